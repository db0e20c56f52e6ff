#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/detail/mapped_file.h"
#include "engine/detail/packed_file.h"
#include "engine/detail/weight_cache.h"
#include "engine/model.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"

namespace fixpoint::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::StartsWith;
using kernels::DType;

constexpr std::int64_t kWeights = 5;  ///< of a model with one layer whose output is its embedding

/// Rows of whole 256-element blocks.
test_models::RandomModelSpec spec_of(DType type, std::uint64_t seed = 1) {
  return {.num_layers = 1, .hidden = 256, .num_heads = 4, .num_kv_heads = 2, .head_dim = 64, .ffn = 256, .type = type, .seed = seed};
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

class WeightCacheTest : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path model_path() const { return folder() / "model.gguf"; }
  [[nodiscard]] const fs::path& folder() const { return directory_.path(); }

  [[nodiscard]] std::unique_ptr<Model> load(const std::optional<fs::path>& cache, std::unique_ptr<kernels::Backend> backend = nullptr) const {
    auto file = ModelFile::open(model_path());
    if (!file) throw std::runtime_error(file.error().message());
    if (backend == nullptr) backend = kernels::make_cpu_backend({.num_threads = 1});
    auto model = Model::load(std::move(*file), std::move(backend), {.progress = {}, .weight_cache = cache});
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
  }
  [[nodiscard]] std::unique_ptr<Model> load_cached() const { return load(folder()); }

  /// The model is loaded, with a cache that packs so many of its weights.
  void expect_packed(std::int64_t packed, const std::vector<float>& logits, const std::string& what = {}) const {
    const auto model = load_cached();
    ASSERT_NE(model->weight_cache(), nullptr);
    const WeightCacheReport& report = *model->weight_cache();
    EXPECT_EQ(report.packed, packed) << what;
    EXPECT_EQ(report.mapped, kWeights - packed) << what;
    EXPECT_FALSE(report.error) << report.error->message() << what;
    EXPECT_EQ(logits_of(*model), logits) << what;
  }

  /// Of all rows of a sequence of 20 tokens, one of them number 96.
  static std::vector<float> logits_of(Model& model) {
    constexpr std::int32_t n = 20;
    std::vector<TokenId> tokens(n);
    std::vector<std::int32_t> positions(n);
    std::iota(tokens.begin(), tokens.end(), 90);
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<std::int32_t> q{0, n}, blocks_of{0, 2}, blocks{0, 1}, last{4};
    model.allocate_kv(2, 16, kernels::KvType::f32);
    const auto logits = model.forward({tokens, {16, q, blocks_of, blocks, last, positions}, positions, {}}).logits;
    return {logits.begin(), logits.end()};
  }

  [[nodiscard]] std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }

 private:
  test_models::TemporaryDirectory directory_;
};

TEST_F(WeightCacheTest, TheSecondLoadPacksNothingAndGivesTheSameBits) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                           DType::q4_k, DType::q5_k, DType::q6_k}) {
    const std::string name(kernels::traits(type).name);
    test_models::write_random_model(model_path(), spec_of(type));
    const auto plain = load(std::nullopt);
    EXPECT_EQ(plain->weight_cache(), nullptr);
    EXPECT_EQ(plain->mapped_weight_bytes(), 0U);
    const std::vector<float> logits = logits_of(*plain);
    ASSERT_TRUE(std::ranges::any_of(logits, [](float x) { return x != 0; }));
    const auto first = load_cached();
    EXPECT_EQ(first->weight_cache()->packed, kWeights) << name;
    EXPECT_EQ(first->weight_cache()->mapped, 0) << name;
    EXPECT_EQ(logits_of(*first), logits) << name;
    const auto second = load_cached();
    EXPECT_EQ(second->weight_cache()->packed, 0) << name;
    EXPECT_EQ(second->weight_cache()->mapped, kWeights) << name;
    EXPECT_EQ(second->mapped_weight_bytes(), static_cast<std::size_t>(second->weight_bytes_per_step())) << name;
    EXPECT_EQ(logits_of(*second), logits) << name;
  }
}

TEST_F(WeightCacheTest, AFolderWithSafetensorsHasItsCacheInside) {
  const fs::path model = folder() / "model.gguf";  // a folder, for once
  auto spec = spec_of(DType::f16);
  spec.format = test_models::ModelFormat::safetensors;
  test_models::write_random_model(model, spec);
  const std::vector<float> logits = logits_of(*load(std::nullopt));
  for (const std::int64_t packed : {kWeights, std::int64_t{0}}) {
    const auto loaded = load(model);
    EXPECT_EQ(loaded->weight_cache()->packed, packed);
    EXPECT_EQ(loaded->weight_cache()->file.parent_path(), model);
    EXPECT_EQ(logits_of(*loaded), logits);
  }
}

TEST_F(WeightCacheTest, MatricesThatAreInTheCacheAreNotReadFromTheModel) {
  test_models::write_random_model(model_path(), spec_of(DType::f32));
  const std::vector<float> logits = logits_of(*load_cached());
  std::string row;  // of token 96, a quarter into the embedding: no sample of the fingerprint
  {
    const auto file = ModelFile::open(model_path());
    const auto* embedding = file->find("token_embd.weight");
    row.assign(reinterpret_cast<const char*>(embedding->row(96)), 64);
  }
  std::string content = content_of(model_path());
  const auto place = content.find(row);
  ASSERT_NE(place, std::string::npos);
  std::array<float, 16> others{};
  others.fill(1);
  std::memcpy(content.data() + place, others.data(), sizeof others);
  const auto time = fs::last_write_time(model_path());
  write(model_path(), content);
  fs::last_write_time(model_path(), time);
  expect_packed(0, logits);
  EXPECT_NE(logits_of(*load(std::nullopt)), logits);
}

TEST_F(WeightCacheTest, AnotherModelIsPackedAnew) {
  test_models::write_random_model(model_path(), spec_of(DType::q4_0));
  const std::vector<float> first = logits_of(*load_cached());
  const auto time = fs::last_write_time(model_path());
  test_models::write_random_model(model_path(), spec_of(DType::q4_0, 2));
  fs::last_write_time(model_path(), time);
  const std::vector<float> second = logits_of(*load(std::nullopt));
  ASSERT_NE(second, first);
  expect_packed(kWeights, second, "other bytes, the same size and time");
  expect_packed(0, second);
  fs::last_write_time(model_path(), time + std::chrono::seconds(2));
  expect_packed(kWeights, second, "another time");
  expect_packed(0, second);
  EXPECT_EQ(num_files(), 2U);
}

TEST_F(WeightCacheTest, ADamagedFileIsWrittenAnew) {
  test_models::write_random_model(model_path(), spec_of(DType::q8_0));
  const std::vector<float> logits = logits_of(*load_cached());
  const auto model = load_cached();
  const fs::path file = model->weight_cache()->file;
  const std::string whole = content_of(file);
  const auto flipped = [&](std::size_t at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    return damaged;
  };
  const std::vector<std::pair<std::string, std::string>> damages{
      {"empty", ""},          {"a header alone", whole.substr(0, 48)}, {"half", whole.substr(0, whole.size() / 2)},
      {"magic", flipped(0)},  {"version", flipped(8)},                 {"length", flipped(17)},
      {"place", flipped(25)}, {"directory", flipped(whole.size() - 20)},
      {"text", "This is no file of weights, and long enough to be looked at as a header of one."}};
  for (const auto& [what, content] : damages) {
    fs::remove(file);  // what `model` maps of it stays
    write(file, content);
    expect_packed(kWeights, logits, what);
    expect_packed(0, logits, what);
  }
  EXPECT_EQ(logits_of(*model), logits);
  EXPECT_EQ(content_of(file), whole);
}

TEST_F(WeightCacheTest, WhatDoesNotFitTheBackendIsPackedAnew) {
  test_models::write_random_model(model_path(), spec_of(DType::q5_1));
  const auto model = load_cached();
  const std::vector<float> logits = logits_of(*model);
  const fs::path path = model->weight_cache()->file;
  const std::string whole = content_of(path);
  const auto directory = detail::parse_packed_file(std::as_bytes(std::span(whole)), "f");
  ASSERT_TRUE(directory) << directory.error().message();
  ASSERT_EQ(directory->entries.size(), static_cast<std::size_t>(kWeights));
  const auto rewrite = [&](const std::string& form, const std::string& shortened) {
    detail::PackedFileWriter writer(path);
    for (const auto& [name, bytes] : directory->entries) writer.add(name, name == shortened ? bytes.first(bytes.size() - 64) : bytes);
    EXPECT_FALSE(writer.commit({form, directory->key.fingerprint}));
  };
  rewrite("panels of another machine", "");
  expect_packed(kWeights, logits, "another form");
  expect_packed(0, logits);
  rewrite(directory->key.form, "blk.0.attn_output.weight");
  expect_packed(1, logits, "one weight of another size");
  expect_packed(0, logits);
  EXPECT_EQ(content_of(path), whole);
}

TEST_F(WeightCacheTest, AFolderThatCannotBeWrittenCostsTheCacheOnly) {
  test_models::write_random_model(model_path(), spec_of(DType::q4_k));
  const std::vector<float> logits = logits_of(*load(std::nullopt));
  const fs::path closed = folder() / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
  for (const fs::path& where : {folder() / "nowhere", closed}) {
    if (where == closed && ::geteuid() == 0) continue;  // open to root all the same
    const auto model = load(where);
    ASSERT_NE(model->weight_cache(), nullptr);
    EXPECT_EQ(model->weight_cache()->packed, kWeights);
    ASSERT_TRUE(model->weight_cache()->error) << where;
    EXPECT_EQ(model->weight_cache()->error->kind, LoadError::Kind::io);
    EXPECT_EQ(logits_of(*model), logits);
  }
  fs::permissions(closed, fs::perms::owner_all);
}

TEST_F(WeightCacheTest, ADiskThatIsFullCostsTheCacheOnly) {
  test_models::write_random_model(model_path(), spec_of(DType::f32));
  const std::vector<float> logits = logits_of(*load(std::nullopt));
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small{std::min<rlim_t>(old.rlim_max, 500000), old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto model = load_cached();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(model->weight_cache()->error);
  EXPECT_EQ(model->weight_cache()->error->where, "write");
  EXPECT_EQ(logits_of(*model), logits);
  EXPECT_EQ(num_files(), 1U);
  expect_packed(kWeights, logits, "room again");
  expect_packed(0, logits);
}

TEST_F(WeightCacheTest, ModelsThatLoadAtOnceLeaveOneWholeFile) {
  test_models::write_random_model(model_path(), spec_of(DType::q4_0));
  const std::vector<float> logits = logits_of(*load(std::nullopt));
  {
    std::vector<std::jthread> loaders;
    for (int i = 0; i < 4; ++i) {
      loaders.emplace_back([&] {
        const auto model = load_cached();
        EXPECT_EQ(model->weight_cache()->packed + model->weight_cache()->mapped, kWeights);
        EXPECT_FALSE(model->weight_cache()->error);
        EXPECT_EQ(logits_of(*model), logits);
      });
    }
  }
  expect_packed(0, logits);
  EXPECT_EQ(num_files(), 2U);
}

TEST_F(WeightCacheTest, ABackendThatPacksNothingHasNoCache) {
  test_models::write_random_model(model_path(), spec_of(DType::f16));
  EXPECT_EQ(load(folder(), kernels::make_reference_backend())->weight_cache(), nullptr);
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(WeightCacheTest, TheFilesNameTellsModelFormAndVersion) {
  const auto name_in = [&](const fs::path& where) {
    const auto file = ModelFile::open(model_path());
    return detail::packed_file_in(where, *file, "form").filename().string();
  };
  test_models::write_random_model(model_path(), spec_of(DType::f32));
  EXPECT_EQ(name_in(folder()), "model.gguf.form.v1.weights");
  EXPECT_EQ(name_in(folder() / "."), "model.gguf.form.v1.weights");
  const fs::path elsewhere = folder() / "elsewhere";
  fs::create_directory(elsewhere);
  EXPECT_THAT(name_in(elsewhere), ::testing::AllOf(StartsWith("model.gguf-"), EndsWith(".form.v1.weights")));
  // A model of this name in another folder has another file there.
  const auto first = name_in(elsewhere);
  const fs::path other = folder() / "other";
  fs::create_directory(other);
  test_models::write_random_model(other / "model.gguf", spec_of(DType::f32));
  const auto file = ModelFile::open(other / "model.gguf");
  EXPECT_NE(detail::packed_file_in(elsewhere, *file, "form").filename().string(), first);
}

}  // namespace
}  // namespace fixpoint::engine
