#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cuda_backend.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/plain_choice.h"

namespace fixpoint::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class CudaChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_status().devices.empty()) GTEST_SKIP() << "no CUDA device: " << cuda_status().reason;
    backend_ = make_cuda_backend();
  }

  /// The device's choices from `rows` of `width` floats.
  std::vector<std::int32_t> choose(Floats& rows, std::int64_t width, std::span<const RowChoice> choices) {
    const std::int64_t n = static_cast<std::int64_t>(rows.size()) / width;
    const Buffer logits = backend_->allocate(rows.size() * sizeof(float));
    backend_->upload(matrix(rows, n, width), logits.view(DType::f32, {n, width}));
    const Buffer host = backend_->allocate_host(choices.size() * sizeof(std::int32_t));
    const std::span out(reinterpret_cast<std::int32_t*>(host.data()), choices.size());
    backend_->choose(logits.view(DType::f32, {n, width}), choices, out);
    backend_->synchronize();
    return {out.begin(), out.end()};
  }

  std::unique_ptr<Backend> backend_;
};

std::int32_t expected_choice(const Floats& rows, std::int64_t width, const RowChoice& choice) {
  const std::span<const float> row(rows.data() + choice.row * width, static_cast<std::size_t>(width));
  return plain_choice(row, choice, token_weight);
}

RowChoice random_choice(Random& random, std::int32_t row, std::int32_t vocabulary) {
  const auto pick = [&]<class T, std::size_t n>(const std::array<T, n>& values) {
    return values[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(n) - 1))];
  };
  return {.row = row,
          .vocab_size = vocabulary,
          .inverse_temperature = pick(std::array{0.0F, 0.001F, 0.2F, 1.0F, 1.0F / 0.7F, 1e4F}),
          .depth = pick(std::array{kInfinity, kInfinity, 0.0F, 0.5F, 4.0F}),
          .top_k = pick(std::array{0, 0, 1, 2, 40, vocabulary - 1, vocabulary, vocabulary + 3}),
          .top_p = pick(std::array{1.0F, 1.0F, 1e-6F, 0.3F, 0.9F, 0.99999994F}),
          .u = pick(std::array{0.0, 0.1, 0.25, 0.5, 0.77, 0.9, 1.0 - 0x1p-53})};
}

TEST_F(CudaChoiceTest, ChoosesWhatThePlainWalkChooses) {
  EXPECT_TRUE(backend_->chooses_tokens());
  Random random(5);
  for (const std::int32_t vocabulary : {1, 2, 31, 33, 1000, 1024, 2500}) {
    const std::int64_t width = vocabulary + 3;
    constexpr std::int32_t kRows = 12;
    Floats rows = random.normal(kRows * width, 3.0F);
    std::vector<RowChoice> choices;
    for (std::int32_t row = 0; row < kRows; ++row) {
      float* logits = rows.data() + row * width;
      // Spread, many equals with zeros of both signs, all but equal, and holes.
      for (std::int64_t i = 0; i < width; ++i) {
        if (row % 4 == 1) logits[i] = std::round(logits[i]);
        if (row % 4 == 2) logits[i] = 7.0F;
        if (row % 4 == 3 && i % 5 != row % 5) logits[i] = -kInfinity;
      }
      if (row % 4 == 3) logits[row % vocabulary] = 2.0F;
      for (std::int64_t i = vocabulary; i < width; ++i) logits[i] = i % 2 == 0 ? 1000.0F : std::nanf("");  // padding
      for (int i = 0; i < (vocabulary <= 33 ? 8 : 3); ++i) choices.push_back(random_choice(random, row, vocabulary));
    }
    const std::vector<std::int32_t> actual = choose(rows, width, choices);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const RowChoice& c = choices[i];
      ASSERT_EQ(actual[i], expected_choice(rows, width, c))
          << "row " << c.row << " of " << vocabulary << ", 1/T " << c.inverse_temperature << ", depth " << c.depth
          << ", top_k " << c.top_k << ", top_p " << c.top_p << ", u " << c.u;
    }
  }
}

// Few rows of so many logits have four blocks each, the first three of which look at 3092 ids.
TEST_F(CudaChoiceTest, RowsThatBlocksShareGiveWhatThePlainWalkChooses) {
  constexpr std::int32_t kVocabulary = 3 * 4096 + 77;
  constexpr std::int32_t kRows = 5;
  Random random(7);
  Floats rows = random.normal(kRows * kVocabulary, 3.0F);
  const auto logit = [&](std::int32_t row, std::int32_t id) -> float& {
    return rows[static_cast<std::size_t>(row * kVocabulary + id)];
  };
  for (std::int32_t id = 0; id < kVocabulary; ++id) {
    // Spread, many equals, all equal, next to nothing before the last part, and one that is no number at the end.
    logit(1, id) = std::round(logit(1, id));
    logit(2, id) = 7.0F;
    if (id < 10'000 && id != 5) logit(3, id) = -kInfinity;
  }
  logit(4, kVocabulary - 1) = std::nanf("");
  std::vector<RowChoice> choices;
  for (std::int32_t row = 0; row < kRows; ++row) {
    for (int i = 0; i < 5; ++i) choices.push_back(random_choice(random, row, kVocabulary));
  }
  for (const std::int32_t top_k : {1, 3092, 3093, 9000}) {  // of equals the last that is kept
    choices.push_back(
        {.row = 2, .vocab_size = kVocabulary, .inverse_temperature = 1.0F, .top_k = top_k, .u = 1.0 - 0x1p-53});
  }
  choices.push_back({.row = 0, .vocab_size = 5, .inverse_temperature = 1.0F, .u = 0.99});
  const std::vector<std::int32_t> actual = choose(rows, kVocabulary, choices);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const RowChoice& c = choices[i];
    EXPECT_EQ(actual[i], expected_choice(rows, kVocabulary, c))
        << "choice " << i << ", row " << c.row << ", 1/T " << c.inverse_temperature << ", depth " << c.depth
        << ", top_k " << c.top_k << ", top_p " << c.top_p << ", u " << c.u;
  }
}

TEST_F(CudaChoiceTest, EveryPlaceOfTheDrawIsReached) {
  constexpr std::int32_t kVocabulary = 70;
  Floats row(kVocabulary, 0.0F);
  std::vector<RowChoice> choices;
  for (int i = 0; i < kVocabulary; ++i) {
    choices.push_back({.vocab_size = kVocabulary, .inverse_temperature = 1.0F, .u = (i + 0.5) / kVocabulary});
  }
  const std::vector<std::int32_t> actual = choose(row, kVocabulary, choices);
  for (int i = 0; i < kVocabulary; ++i) EXPECT_EQ(actual[static_cast<std::size_t>(i)], i);
}

TEST_F(CudaChoiceTest, RowsThatAreNotFiniteAreRefused) {
  constexpr std::int32_t kVocabulary = 1500;
  Random random(6);
  Floats rows = random.normal(5 * kVocabulary);
  rows[3] = std::nanf("");
  rows[kVocabulary + 1400] = kInfinity;
  rows[2 * kVocabulary + 7] = -std::nanf("");
  std::fill_n(rows.begin() + 3 * kVocabulary, kVocabulary, -kInfinity);
  for (const float inverse_temperature : {0.0F, 1.0F}) {
    std::vector<RowChoice> choices;
    for (std::int32_t row = 0; row < 5; ++row) {
      choices.push_back({.row = row, .vocab_size = kVocabulary, .inverse_temperature = inverse_temperature});
    }
    const std::vector<std::int32_t> actual = choose(rows, kVocabulary, choices);
    for (std::size_t row = 0; row < 4; ++row) EXPECT_LT(actual[row], 0) << "row " << row;
    EXPECT_EQ(actual[4], expected_choice(rows, kVocabulary, choices[4]));
  }
}

TEST_F(CudaChoiceTest, RowsOutOfRangeAreRefused) {
  const Buffer logits = backend_->allocate(2 * 10 * sizeof(float));
  const Buffer host = backend_->allocate_host(sizeof(std::int32_t));
  const std::span out(reinterpret_cast<std::int32_t*>(host.data()), 1);
  const auto refused = [&](const RowChoice& choice) {
    EXPECT_THROW(backend_->choose(logits.view(DType::f32, {2, 10}), {&choice, 1}, out), std::invalid_argument);
  };
  refused({.row = 2, .vocab_size = 10});
  refused({.row = -1, .vocab_size = 10});
  refused({.row = 0, .vocab_size = 11});
  refused({.row = 0, .vocab_size = 0});
}

}  // namespace
}  // namespace fixpoint::kernels
