#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/model_file.h"
#include "kernels/backend.h"
#include "tests/engine/models/temporary_directory.h"
#include "tests/oracle/golden_models.h"

namespace fixpoint::oracle {
namespace {

using engine::TokenId;
using kernels::DType;

/// Largest distance of a logit from the oracle's, in units of the row's root mean square, that the CPU backend may have.
/// F32 differs by rounding alone. The 16-bit types multiply activations of 16 bits where the machine does so; the block types
/// multiply activations of 8 bits.
double cpu_bound(DType type) {
  switch (type) {
    case DType::f32: return 5e-5;
    case DType::f16:
    case DType::bf16: return 0.05;
    default: return 0.12;
  }
}
constexpr double kReferenceBound = 5e-5;

/// FNV-1a over words of 8 bytes.
std::string fnv1a(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t h = 0xCBF29CE484222325ULL;
  std::uint64_t word = 0;
  while (in.read(reinterpret_cast<char*>(&word), sizeof word)) h = (h ^ word) * 0x100000001B3ULL;
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(h));
  return text.data();
}

/// Logits of the wanted rows, for a whole sequence computed at once in F32 KV.
std::vector<std::vector<float>> logits_of(engine::Model& model, const std::vector<TokenId>& tokens,
                                          const std::vector<std::int32_t>& rows) {
  const auto n = static_cast<std::int32_t>(tokens.size());
  constexpr std::int32_t kBlock = 16;
  const std::int32_t num_blocks = (n + kBlock - 1) / kBlock;
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(num_blocks)), positions(tokens.size());
  std::iota(blocks.rbegin(), blocks.rend(), 0);  // not in the order of the text
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<std::int32_t> q{0, n}, b{0, num_blocks}, last{n - (num_blocks - 1) * kBlock};
  const kernels::PagedBatch batch{kBlock, q, b, blocks, last, positions};
  const auto flat = model.forward({tokens, batch, rows, {}}).logits;
  std::vector<std::vector<float>> out;
  const auto width = static_cast<std::ptrdiff_t>(model.vocab_size());
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(rows.size()); ++i) {
    out.emplace_back(flat.begin() + i * width, flat.begin() + (i + 1) * width);
  }
  return out;
}

std::unique_ptr<engine::Model> load(const std::filesystem::path& path, std::unique_ptr<kernels::Backend> backend) {
  auto file = engine::ModelFile::open(path);
  if (!file) throw std::runtime_error(file.error().message());
  auto model = engine::Model::load(std::move(*file), std::move(backend));
  if (!model) throw std::runtime_error(model.error().message());
  (*model)->allocate_kv(8, 16, kernels::KvType::f32);
  return std::move(*model);
}

nlohmann::json golden_named(const std::string& name) {
  static const auto all = [] {
    std::ifstream in(FIXPOINT_GOLDENS);
    return nlohmann::json::parse(in);
  }();
  for (const auto& g : all) {
    if (g["name"] == name) return g;
  }
  throw std::runtime_error("goldens.json has no " + name);
}

class GoldenTest : public ::testing::TestWithParam<GoldenModel> {
 protected:
  GoldenTest() : golden_(golden_named(GetParam().name)), path_(directory_.path() / "model.gguf") {
    test_models::write_random_model(path_, GetParam().spec);
    if (fnv1a(path_) != golden_["file_fnv1a"]) throw std::runtime_error("the goldens are of another file: compute them again");
  }

  /// The largest distance from the oracle, in units of the row's root mean square.
  double distance(engine::Model& model) {
    std::vector<std::int32_t> positions;
    for (const auto& row : golden_["rows"]) positions.push_back(row["position"].get<std::int32_t>());
    const auto got = logits_of(model, golden_["prompt"].get<std::vector<TokenId>>(), positions);
    const auto stride = golden_["stride"].get<std::size_t>();
    double worst = 0;
    for (std::size_t r = 0; r < got.size(); ++r) {
      const auto& row = golden_["rows"][r];
      const auto want = row["logits"].get<std::vector<double>>();
      EXPECT_EQ(want.size(), (got[r].size() + stride - 1) / stride);
      for (std::size_t i = 0; i < want.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(got[r][i * stride]) - want[i]) / row["rms"].get<double>());
      }
    }
    return worst;
  }

  std::vector<TokenId> greedy(engine::Model& model) {
    auto tokens = golden_["prompt"].get<std::vector<TokenId>>();
    const auto start = static_cast<std::ptrdiff_t>(tokens.size());
    for (std::size_t i = 0; i < golden_["greedy"].size(); ++i) {
      const auto row = logits_of(model, tokens, {static_cast<std::int32_t>(tokens.size()) - 1}).front();
      tokens.push_back(static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
    return {tokens.begin() + start, tokens.end()};
  }

  test_models::TemporaryDirectory directory_;
  nlohmann::json golden_;
  std::filesystem::path path_;
};

TEST_P(GoldenTest, TheReferenceBackendAgreesToRounding) {
  const auto model = load(path_, kernels::make_reference_backend());
  EXPECT_LE(distance(*model), kReferenceBound);
  EXPECT_EQ(greedy(*model), golden_["greedy"].get<std::vector<TokenId>>());
}

TEST_P(GoldenTest, TheCpuBackendAgreesWithinItsBoundOnEveryInstructionSet) {
  for (const auto isa : {kernels::CpuIsa::portable, kernels::CpuIsa::avx2, kernels::CpuIsa::avx512, kernels::CpuIsa::best}) {
    std::unique_ptr<kernels::Backend> backend;
    try {
      backend = kernels::make_cpu_backend({.num_threads = 2, .isa = isa});
    } catch (const std::runtime_error&) {
      continue;  // this machine lacks it; portable and best are always there
    }
    const auto name = backend->name();
    const auto model = load(path_, std::move(backend));
    const auto worst = distance(*model);
    RecordProperty("distance_" + std::to_string(static_cast<int>(isa)), std::to_string(worst));
    EXPECT_LE(worst, cpu_bound(GetParam().spec.type)) << name;
    if (GetParam().spec.type == DType::f32) {
      EXPECT_EQ(greedy(*model), golden_["greedy"].get<std::vector<TokenId>>()) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::ValuesIn(golden_models()), [](const auto& test) {
  auto name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace fixpoint::oracle
