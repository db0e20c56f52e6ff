// Attention of many tokens of a sequence, 65 or more, where it may use the tensor cores: backends whose bits may depend on the size
// of a step.
#include "tests/kernels/attention_fixture.h"

namespace fixpoint::kernels {
namespace {

class PrefillAttentionTest : public AttentionFixture {
 protected:
  void SetUp() override {
    if (GetParam().invariant) GTEST_SKIP() << GetParam().name << " has one kernel for all: attention_test.cpp";
    BackendTest::SetUp();
  }

  /// Queries, weights and what quantised keys and values stand for are rounded to 11 bits, beside BF16 ones to 8.
  static double tolerance(KvType type) { return type == KvType::bf16 ? 3e-2 : is_quantised(type) ? 1e-2 : 4e-3; }

  /// All tokens of the sequences in one step, on the backend and on the reference.
  void expect_reference(const Heads& h, std::vector<Sequence>& all, const KvShape& shape) {
    KvLayer kv = backend_->allocate_kv(shape);
    KvLayer reference_kv = reference_->allocate_kv(shape);
    std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
    for (const Sequence& s : all) ranges.emplace_back(0, s.length);
    const Floats actual = step(*backend_, kv, h, all, ranges);
    const Floats expected = step(*reference_, reference_kv, h, all, ranges);
    EXPECT_LT(worst_error(actual, expected), tolerance(shape.type))
        << to_string(shape.type) << " dim " << h.dim << " group " << h.group << " length " << all[0].length;
  }
};

TEST_P(PrefillAttentionTest, MatchesTheReferenceForEveryHeadShapeAndType) {
  Random random(41);
  for (const KvType type : kKvTypes) {
    for (const std::int32_t dim : {20, 64, 80, 96, 128}) {
      for (const std::int32_t group : {1, 3, 4, 7, 12}) {
        if (slow() && (group + dim / 4) % 3 != 0) continue;
        const Heads h{2, group, dim};
        const std::int32_t block_size = std::vector{16, 8, 32, 24}[static_cast<std::size_t>(random.between(0, 3))];
        std::vector<Sequence> one{sequence(random, h, static_cast<std::int32_t>(random.between(65, slow() ? 100 : 400)))};
        one[0].blocks = shuffled_blocks(random, 60);
        expect_reference(h, one, {60, block_size, h.kv, h.dim, type});
      }
    }
  }
}

TEST_P(PrefillAttentionTest, MoreThan64TokensTakeTheTensorCoresUnlessKeysAndValuesAreF32) {
  Random random(46);
  const Heads h{2, 4, 64};
  std::vector<Sequence> one{sequence(random, h, 80)};
  one[0].blocks = {3, 0, 4, 1, 2};
  const auto width = static_cast<std::int64_t>(h.query()) * h.dim;
  for (const KvType type : {KvType::f32, KvType::f16}) {
    const auto in_chunks_of = [&](std::int32_t tokens) {
      KvLayer kv = backend_->allocate_kv({5, 16, h.kv, h.dim, type});
      Floats all;
      for (std::int32_t first = 0; first < 80; first += tokens) {
        const Floats chunk = step(*backend_, kv, h, one, {{first, std::min(80, first + tokens)}});
        all.insert(all.end(), chunk.begin(), chunk.end());
      }
      return all;
    };
    const Floats few = in_chunks_of(16);
    EXPECT_TRUE(same_bits(in_chunks_of(64).data(), few.data(), 80 * width)) << to_string(type);
    const Floats many = in_chunks_of(80);
    EXPECT_EQ(same_bits(many.data(), few.data(), 80 * width), type == KvType::f32) << to_string(type);
    EXPECT_LT(worst_error(many, few), tolerance(type)) << to_string(type);
  }
}

TEST_P(PrefillAttentionTest, PromptsAndSingleTokensShareAStep) {
  Random random(42);
  const Heads h{2, 4, 64};
  std::vector<Sequence> all;
  const std::vector<std::int32_t> ids = shuffled_blocks(random, 40);
  for (const std::int32_t length : {1, 70, 5, 33}) {
    all.push_back(sequence(random, h, length));
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(10 * (all.size() - 1));
    all.back().blocks.assign(first, first + 10);
  }
  expect_reference(h, all, {40, 16, h.kv, h.dim, KvType::f16});
}

TEST_P(PrefillAttentionTest, ARowDoesNotDependOnTheTilesOfItsChunk) {
  Random random(43);
  const Heads h{1, 6, 64};
  std::vector<Sequence> one{sequence(random, h, 200)};
  one[0].blocks = shuffled_blocks(random, 13);
  const auto width = static_cast<std::int64_t>(h.query()) * h.dim;
  for (const KvType type : kKvTypes) {
    const KvShape shape{13, 16, h.kv, h.dim, type};
    KvLayer kv = backend_->allocate_kv(shape);
    const Floats whole = step(*backend_, kv, h, one, {{0, 200}});
    KvLayer cut = backend_->allocate_kv(shape);
    for (const auto& [first, last] : std::vector<std::pair<std::int32_t, std::int32_t>>{{0, 66}, {66, 131}, {131, 200}}) {
      const Floats chunk = step(*backend_, cut, h, one, {{first, last}});
      EXPECT_TRUE(same_bits(chunk.data(), whole.data() + first * width, (last - first) * width)) << first << ".." << last;
    }
  }
}

TEST_P(PrefillAttentionTest, WhatABlockHeldBeforeDoesNotMatter) {
  Random random(44);
  const Heads h{1, 2, 64};
  const KvShape shape{6, 16, h.kv, h.dim, KvType::f16};
  KvLayer kv = backend_->allocate_kv(shape);
  std::vector<Sequence> loud{sequence(random, h, 96)};
  loud[0].blocks = {0, 1, 2, 3, 4, 5};
  for (float& x : loud[0].v) x = std::numeric_limits<float>::quiet_NaN();
  for (float& x : loud[0].k) x = std::numeric_limits<float>::quiet_NaN();
  static_cast<void>(step(*backend_, kv, h, loud, {{0, 96}}));
  std::vector<Sequence> quiet{sequence(random, h, 69)};
  quiet[0].blocks = {2, 0, 3, 5, 1};
  const Floats reused = step(*backend_, kv, h, quiet, {{0, 69}});
  KvLayer fresh = backend_->allocate_kv(shape);
  EXPECT_TRUE(same_bits(reused.data(), step(*backend_, fresh, h, quiet, {{0, 69}}).data(), static_cast<std::int64_t>(reused.size())));
}

TEST_P(PrefillAttentionTest, LargeScoresDoNotOverflow) {
  Random random(45);
  const Heads h{1, 2, 64};
  std::vector<Sequence> one{sequence(random, h, 70)};
  one[0].blocks = {1, 0, 2, 4, 3};
  for (float& x : one[0].q) x *= 1e4F;
  for (float& x : one[0].k) x *= 1e4F;
  KvLayer kv = backend_->allocate_kv({5, 16, h.kv, h.dim, KvType::f16});
  for (const float x : step(*backend_, kv, h, one, {{0, 70}})) ASSERT_TRUE(std::isfinite(x));
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, PrefillAttentionTest, ::testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace fixpoint::kernels
