#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "engine/language_model.h"
#include "engine/model.h"
#include "kernels/cuda_backend.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {

/// Small models for the engine over the CUDA backend: on an emulated device, or on one where the test is linked with that.
class CudaFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::cuda_status().devices.empty()) GTEST_SKIP() << "no CUDA device: " << kernels::cuda_status().reason;
  }

  [[nodiscard]] static std::unique_ptr<LanguageModel> load(const LanguageModelOptions& options) {
    auto model = LanguageModel::load(options);
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
  }

  [[nodiscard]] LanguageModelOptions options(const test_models::RandomModelSpec& spec) const {
    LanguageModelOptions options;
    options.path = directory_.path() / "model.gguf";
    test_models::write_random_model(options.path, spec);
    options.cpu.num_threads = 1;
    options.engine = {.kv_memory_bytes = std::size_t{1} << 20U, .kv_type = kernels::KvType::f32, .max_running = 4, .max_step_tokens = 24};
    return options;
  }

  test_models::TemporaryDirectory directory_;
};

/// Logits of the last `rows` of the tokens first.. + count - 1 of a sequence, in blocks of 16 from the last that it needs.
inline std::vector<float> forward(Model& model, std::int32_t first, std::int32_t count, std::int32_t rows) {
  const std::vector<TokenId> tokens = testing::words(count, 1);
  const std::int32_t blocks = (first + count + 15) / 16;
  const std::vector<std::int32_t> q_indptr{0, count}, block_indptr{0, blocks}, last_block_len{first + count - 16 * (blocks - 1)};
  std::vector<std::int32_t> block_ids(static_cast<std::size_t>(blocks));
  std::iota(block_ids.rbegin(), block_ids.rend(), 0);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(count)), wanted(static_cast<std::size_t>(rows));
  std::iota(positions.begin(), positions.end(), first);
  std::iota(wanted.begin(), wanted.end(), count - rows);
  const auto logits = model.forward({tokens, {16, q_indptr, block_indptr, block_ids, last_block_len, positions}, wanted, {}}).logits;
  return {logits.begin(), logits.end()};
}

}  // namespace fixpoint::engine
