// What the engine over the CUDA backend takes of a device's memory; the emulated one has as much as a test says.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/emulated_stream.h"
#include "tests/engine/serving/cuda_fixture.h"

namespace fixpoint::engine {
namespace {

using CudaMemoryTest = CudaFixture;

TEST_F(CudaMemoryTest, KeysAndValuesTakeWhatTheShareLeaves) {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
  LanguageModelOptions on = options({.arch = Architecture::llama, .num_layers = 1, .context = 2048});
  on.cuda = kernels::CudaOptions{};
  on.engine.kv_memory_bytes.reset();
  on.engine.max_running = 24;
  on.gpu_memory_share = 0.5;
  cuda_emulation::set_device_bytes(20 * kMegabyte);
  {
    const auto model = load(on);
    EXPECT_LE(cuda_emulation::allocated_bytes(), 10 * kMegabyte);
    EXPECT_GE(cuda_emulation::allocated_bytes(), 9 * kMegabyte);
    EXPECT_EQ(model->engine().generate(testing::greedy(testing::words(40, 1), 3))->samples[0].tokens.size(), 3U);
    EXPECT_LE(cuda_emulation::allocated_bytes(), 10 * kMegabyte) << "serving needs no more than was measured";
  }
  on.gpu_memory_share = 0.05;
  const auto too_little = LanguageModel::load(on);
  ASSERT_FALSE(too_little);
  EXPECT_NE(too_little.error().message().find("kv_memory"), std::string::npos) << too_little.error().message();
  cuda_emulation::set_device_bytes(4096 * kMegabyte);
}

TEST_F(CudaMemoryTest, ABlockTakesTheBytesThatItIsCountedAs) {
  auto file = ModelFile::open(options({.arch = Architecture::llama, .head_dim = 20}).path);
  const auto model = Model::load(std::move(*file), kernels::make_cuda_backend());
  for (const kernels::KvType type : kernels::kKvTypes) {
    for (const std::int32_t block_size : {1, 16}) {
      (*model)->allocate_kv(1, block_size, type);  // what was there is gone
      const std::size_t one = cuda_emulation::allocated_bytes();
      (*model)->allocate_kv(31, block_size, type);
      EXPECT_EQ(cuda_emulation::allocated_bytes() - one, 30 * (*model)->kv_bytes_per_block(block_size, type)) << to_string(type);
    }
  }
}

TEST_F(CudaMemoryTest, AStepThatFoundNoMemoryCanBeRepeated) {
  const auto path = options({.arch = Architecture::llama}).path;
  const auto load_model = [&] {
    auto file = ModelFile::open(path);
    auto model = Model::load(std::move(*file), kernels::make_cuda_backend());
    (*model)->allocate_kv(4, 16, kernels::KvType::f16);
    return std::move(*model);
  };
  const auto roomy = load_model();
  const auto tight = load_model();
  struct Step {
    std::int32_t first, count, rows;
  };
  // Each needs more than the one before: all of a step's memory, more logits, what recorded steps of single tokens have.
  for (const Step step : {Step{0, 4, 1}, Step{0, 4, 4}, Step{4, 1, 1}}) {
    const std::vector<float> expected = forward(*roomy, step.first, step.count, step.rows);
    const std::size_t before = cuda_emulation::allocated_bytes();
    std::optional<std::vector<float>> actual;
    int failed = 0;
    for (std::size_t room = 0; room < std::size_t{1} << 20U && !actual; room += 1024) {
      cuda_emulation::set_device_bytes(before + room);
      try {
        actual = forward(*tight, step.first, step.count, step.rows);
      } catch (const std::exception& e) {
        ++failed;
        EXPECT_NE(std::string(e.what()).find("cudaErrorMemoryAllocation"), std::string::npos) << e.what();
      }
    }
    cuda_emulation::set_device_bytes(std::size_t{4} << 30U);
    ASSERT_TRUE(actual);
    EXPECT_EQ(*actual, expected);
    EXPECT_GE(failed, step.first == 0 && step.rows == 1 ? 8 : 1);
  }
}

}  // namespace
}  // namespace fixpoint::engine
