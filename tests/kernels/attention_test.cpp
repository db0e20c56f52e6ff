#include "tests/kernels/attention_fixture.h"

namespace fixpoint::kernels {
namespace {

class AttentionTest : public AttentionFixture {
 protected:
  void SetUp() override {
    if (!GetParam().invariant) GTEST_SKIP() << GetParam().name << " differs where rows are many only: prefill_attention_test.cpp";
    BackendTest::SetUp();
  }
};

TEST_P(AttentionTest, MatchesTheReferenceForEveryHeadShapeAndType) {
  Random random(11);
  for (const KvType type : kKvTypes) {
    for (const std::int32_t dim : {20, 33, 64, 80, 96, 128, 256}) {
      for (const std::int32_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12}) {
        if (slow() && (group * 7 + dim) % 3 != 0) continue;  // a third of them
        const Heads h{2, group, dim};
        const std::int32_t block_size = std::vector{16, 8, 32, 24}[static_cast<std::size_t>(random.between(0, 3))];
        const auto length = static_cast<std::int32_t>(random.between(1, 50));
        std::vector<Sequence> one{sequence(random, h, length)};
        one[0].blocks = shuffled_blocks(random, 20);
        KvLayer kv = backend_->allocate_kv({20, block_size, h.kv, h.dim, type});
        KvLayer reference_kv = reference_->allocate_kv(kv.shape);
        const Floats actual = step(*backend_, kv, h, one, {{0, length}});
        const Floats expected = step(*reference_, reference_kv, h, one, {{0, length}});
        ASSERT_LT(worst_error(actual, expected), 1e-5)
            << to_string(type) << " dim " << dim << " group " << group << " length " << length;
      }
    }
  }
}

TEST_P(AttentionTest, AContextOfManySplitsMatchesTheReference) {
  Random random(12);
  const Heads h{1, 7, 64};
  std::vector<Sequence> one{sequence(random, h, 1100)};
  one[0].blocks = shuffled_blocks(random, 70);
  for (const KvType type : kKvTypes) {
    KvLayer kv = backend_->allocate_kv({70, 16, h.kv, h.dim, type});
    KvLayer reference_kv = reference_->allocate_kv(kv.shape);
    store(*backend_, kv, h, one, {{0, 1100}});  // only the last tokens' attention is of interest
    store(*reference_, reference_kv, h, one, {{0, 1100}});
    const Floats actual = step(*backend_, kv, h, one, {{1097, 1100}});
    const Floats expected = step(*reference_, reference_kv, h, one, {{1097, 1100}});
    EXPECT_LT(worst_error(actual, expected), 2e-5) << to_string(type);
  }
}

TEST_P(AttentionTest, QuantisedTypesErrByTheirSteps) {
  Random random(20);
  const Heads h{2, 4, 64};
  std::vector<Sequence> one{sequence(random, h, 300)};
  one[0].blocks = shuffled_blocks(random, 20);
  const auto attended = [&](KvType type) {
    KvLayer kv = backend_->allocate_kv({20, 16, h.kv, h.dim, type});
    store(*backend_, kv, h, one, {{0, 300}});
    return step(*backend_, kv, h, one, {{297, 300}});
  };
  const Floats exact = attended(KvType::f32);
  for (const KvType type : kKvTypes) {
    const double most = type == KvType::int4 ? 0.6 : type == KvType::fp8_e4m3 ? 0.2 : type == KvType::int8 ? 0.05 : type == KvType::bf16 ? 0.02 : 2e-3;
    EXPECT_LT(worst_error(attended(type), exact), most) << to_string(type);
  }
}

TEST_P(AttentionTest, ValuesOfAnySizeGiveFiniteResults) {
  Random random(21);
  const Heads h{1, 2, 48};
  for (const KvType type : kKvTypes) {
    for (const float size : {0.0F, 1e-20F, 1e-5F, 1e4F, 1e30F}) {
      std::vector<Sequence> one{sequence(random, h, 20)};
      one[0].blocks = {1, 0};
      for (float& x : one[0].k) x *= size;
      for (float& x : one[0].v) x *= size;
      KvLayer kv = backend_->allocate_kv({2, 16, h.kv, h.dim, type});
      KvLayer reference_kv = reference_->allocate_kv(kv.shape);
      const Floats actual = step(*backend_, kv, h, one, {{0, 20}});
      const Floats expected = step(*reference_, reference_kv, h, one, {{0, 20}});
      // Scores beyond a float: the range of these types is another.
      if (size > 1e10F && (type == KvType::bf16 || type == KvType::f32)) continue;
      for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_TRUE(std::isfinite(actual[i])) << to_string(type) << " " << size;
        if (size == 0.0F) {
          ASSERT_EQ(actual[i], 0.0F) << to_string(type);
        }
      }
      if (size < 1.0F) {
        EXPECT_LT(worst_error(actual, expected), 1e-4) << to_string(type) << " " << size;
      }
    }
  }
}

TEST_P(AttentionTest, BitsDoNotDependOnBlocksChunksOrCompany) {
  Random random(13);
  for (int round = 0; round < (exact() ? 1 : slow() ? 3 : 12); ++round) {
    const Heads h{static_cast<std::int32_t>(random.between(1, slow() ? 1 : 3)), static_cast<std::int32_t>(random.between(1, 9)), 64};
    // Few rounds: F16, INT8, INT4.
    const KvType type = kKvTypes[static_cast<std::size_t>(slow() ? 1 + 2 * round : round) % kKvTypes.size()];
    std::vector<Sequence> all;
    for (int i = 0; i < 4; ++i) all.push_back(sequence(random, h, static_cast<std::int32_t>(random.between(1, exact() ? 60 : slow() ? 300 : 600))));
    const KvShape shape{160, 16, h.kv, h.dim, type};
    const auto width = static_cast<std::int64_t>(h.query()) * h.dim;

    std::vector<Floats> alone;  // each prefilled whole, by itself
    for (Sequence& s : all) {
      s.blocks = shuffled_blocks(random, 160);
      KvLayer kv = backend_->allocate_kv(shape);
      alone.push_back(step(*backend_, kv, h, {s}, {{0, s.length}}));
    }

    const std::vector<std::int32_t> ids = shuffled_blocks(random, 160);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].blocks.assign(ids.begin() + static_cast<std::ptrdiff_t>(40 * i), ids.begin() + static_cast<std::ptrdiff_t>(40 * i + 40));
    }
    KvLayer kv = backend_->allocate_kv(shape);
    std::vector<std::int32_t> done(all.size(), 0);
    while (true) {  // together, in random chunks, often single tokens
      std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
      std::int64_t tokens = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto chunk = static_cast<std::int32_t>(random.between(0, 2) == 0 ? random.between(0, slow() ? 120 : 300) : random.between(0, 2));
        const std::int32_t end = std::min(all[i].length, done[i] + chunk);
        ranges.emplace_back(end > done[i] ? std::pair{done[i], end} : std::pair{0, 0});
        tokens += ranges.back().second - ranges.back().first;
      }
      if (done == lengths(all)) break;
      if (tokens == 0) continue;
      const Floats out = step(*backend_, kv, h, all, ranges);
      std::int64_t row = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto [first, last] = ranges[i];
        if (last == 0) continue;
        ASSERT_TRUE(same_bits(out.data() + row * width, alone[i].data() + first * width, (last - first) * width))
            << "round " << round << " sequence " << i << " tokens " << first << ".." << last;
        row += last - first;
        done[i] = last;
      }
    }
  }
}

// A tree of prefixes: each sequence begins with some whole blocks of one before it. Bits are those of the same sequences with
// blocks of their own.
TEST_P(AttentionTest, BitsDoNotDependOnWhetherBlocksAreShared) {
  Random random(19);
  for (int round = 0; round < (exact() || slow() ? 2 : 24); ++round) {
    const bool small = exact() || slow();
    const Heads h{static_cast<std::int32_t>(random.between(1, small ? 1 : 2)), 1 + round % 8, random.between(0, 3) == 0 ? 80 : 64};
    const std::int32_t block = std::vector{16, 8, 32, 24}[static_cast<std::size_t>(random.between(0, 3))];
    // Two rounds: INT8, INT4.
    const KvType type = kKvTypes[static_cast<std::size_t>(small ? 3 + 2 * round : round + round / 8) % kKvTypes.size()];
    std::vector<Sequence> all;
    std::vector<std::pair<std::int32_t, std::int32_t>> whole, own, last;
    std::int32_t used = 0;
    for (int i = 0; i < (small ? 4 : random.between(2, 14)); ++i) {
      Sequence s = sequence(random, h, static_cast<std::int32_t>(random.between(1, small ? 330 : 900)));
      std::int32_t shared = 0;  // blocks; at least the last token is its own
      if (i > 0 && random.between(0, 4) > 0) {
        const Sequence& parent = all[static_cast<std::size_t>(random.between(0, i - 1))];
        const std::int32_t most = (std::min(parent.length, s.length) - 1) / block;
        shared = random.between(0, 1) == 0 ? most : static_cast<std::int32_t>(random.between(0, most));
        std::copy_n(parent.k.begin(), std::int64_t{shared} * block * h.kv * h.dim, s.k.begin());
        std::copy_n(parent.v.begin(), std::int64_t{shared} * block * h.kv * h.dim, s.v.begin());
        s.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + shared);
      }
      while (static_cast<std::int32_t>(s.blocks.size()) * block < s.length) s.blocks.push_back(used++);
      const std::int32_t chunk = random.between(0, 2) > 0 ? 1 : static_cast<std::int32_t>(random.between(2, random.between(0, 1) == 0 ? 6 : 70));
      const std::int32_t tokens = std::min(s.length - shared * block, chunk);  // decoded, verified, prefilled
      whole.emplace_back(0, s.length);
      own.emplace_back(shared * block, s.length);
      last.emplace_back(s.length - tokens, s.length);
      all.push_back(std::move(s));
    }
    KvLayer shared_kv = backend_->allocate_kv({used, block, h.kv, h.dim, type});
    store(*backend_, shared_kv, h, all, own);
    const Floats together = step(*backend_, shared_kv, h, all, last);

    std::int32_t next = 0;
    for (Sequence& s : all) {
      for (std::int32_t& id : s.blocks) id = next++;
    }
    KvLayer own_kv = backend_->allocate_kv({next, block, h.kv, h.dim, type});
    store(*backend_, own_kv, h, all, whole);
    const Floats apart = step(*backend_, own_kv, h, all, last);
    ASSERT_TRUE(same_bits(together.data(), apart.data(), static_cast<std::int64_t>(apart.size())))
        << "round " << round << " group " << h.group << " block " << block << " sequences " << all.size();
  }
}

TEST_P(AttentionTest, BitsDoNotDependOnTheNumberOfThreads) {
  if (slow() || GetParam().threads == 1) GTEST_SKIP() << GetParam().name << " has no number of threads";
  Random random(14);
  const Heads h{2, 2, 64};
  std::vector<Sequence> one{sequence(random, h, 1000)};
  one[0].blocks = shuffled_blocks(random, 63);
  std::vector<Floats> outs;
  for (const int threads : {1, 2, 5}) {
    const auto backend = GetParam().make(threads);
    KvLayer kv = backend->allocate_kv({63, 16, h.kv, h.dim, KvType::f16});
    static_cast<void>(step(*backend, kv, h, one, {{0, 999}}));
    outs.push_back(step(*backend, kv, h, one, {{999, 1000}}));
  }
  EXPECT_TRUE(same_bits(outs[0].data(), outs[1].data(), static_cast<std::int64_t>(outs[0].size())));
  EXPECT_TRUE(same_bits(outs[0].data(), outs[2].data(), static_cast<std::int64_t>(outs[0].size())));
}

TEST_P(AttentionTest, WhatABlockHeldBeforeDoesNotMatter) {
  Random random(15);
  const Heads h{1, 4, 64};
  for (const KvType type : kKvTypes) {
    for (const float before : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e38F}) {
      const KvShape shape{4, 16, h.kv, h.dim, type};
      KvLayer kv = backend_->allocate_kv(shape);
      std::vector<Sequence> loud{sequence(random, h, 64)};
      loud[0].blocks = {0, 1, 2, 3};
      for (float& x : loud[0].v) x = before;
      for (float& x : loud[0].k) x = before;
      static_cast<void>(step(*backend_, kv, h, loud, {{0, 64}}));
      std::vector<Sequence> quiet{sequence(random, h, 37)};
      quiet[0].blocks = {2, 0, 3};
      const Floats reused = step(*backend_, kv, h, quiet, {{0, 37}});
      KvLayer fresh = backend_->allocate_kv(shape);
      EXPECT_TRUE(same_bits(reused.data(), step(*backend_, fresh, h, quiet, {{0, 37}}).data(),
                            static_cast<std::int64_t>(reused.size())))
          << to_string(type) << " after " << before;
    }
  }
}

TEST_P(AttentionTest, ValuesBeyondF16AreStoredAsItsLargest) {
  Random random(16);
  const Heads h{1, 1, 16};
  std::vector<Sequence> one{sequence(random, h, 3)};
  one[0].blocks = {0};
  one[0].v[5] = 1e30F;
  one[0].k[3] = -1e30F;
  KvLayer kv = backend_->allocate_kv({1, 16, 1, 16, KvType::f16});
  for (const float x : step(*backend_, kv, h, one, {{0, 3}})) EXPECT_TRUE(std::isfinite(x));
}

TEST_P(AttentionTest, CopiedBlocksAttendAlike) {
  Random random(17);
  const Heads h{2, 2, 32};
  std::vector<Sequence> one{sequence(random, h, 40)};
  one[0].blocks = {4, 1, 3};
  for (const KvType type : kKvTypes) {
    KvLayer kv = backend_->allocate_kv({8, 16, h.kv, h.dim, type});
    one[0].blocks = {4, 1, 3};
    static_cast<void>(step(*backend_, kv, h, one, {{0, 39}}));
    const std::vector<BlockCopy> copies = {{4, 0}, {1, 6}, {3, 7}};
    backend_->copy_blocks(kv, copies);
    const Floats original = step(*backend_, kv, h, one, {{39, 40}});
    one[0].blocks = {0, 6, 7};
    EXPECT_TRUE(same_bits(original.data(), step(*backend_, kv, h, one, {{39, 40}}).data(),
                          static_cast<std::int64_t>(original.size())))
        << to_string(type);
  }
}

TEST_P(AttentionTest, RefusesBlocksAndPositionsOutOfRange) {
  KvLayer kv = backend_->allocate_kv({2, 16, 1, 16, KvType::f32});
  Floats x(16, 1.0F);
  Floats out = poison(16);
  Step s{16};
  s.add(1, 1, {2});
  for (const std::int32_t outside : {2, -1}) {
    s.block_ids[0] = outside;
    EXPECT_THROW(backend_->attention(cube(x, 1, 1, 16), kv, s.batch(), 1.0F, cube(out, 1, 1, 16)), std::invalid_argument);
  }
  s.block_ids[0] = 1;
  s.positions[0] = 1;
  EXPECT_THROW(
      backend_->rotate_and_store(cube(x, 1, 1, 16), cube(x, 1, 1, 16), cube(x, 1, 1, 16), nullptr, {}, s.batch(), kv),
      std::invalid_argument);
}

TEST_P(AttentionTest, CountsTheContextOncePerSequence) {
  Random random(18);
  const Heads h{2, 3, 16};
  std::vector<Sequence> one{sequence(random, h, 20)};
  one[0].blocks = {0, 1};
  OpCounters before;
  for (const KvType type : kKvTypes) {
    KvLayer kv = backend_->allocate_kv({2, 16, h.kv, h.dim, type});
    static_cast<void>(step(*backend_, kv, h, one, {{0, 20}}));
    const OpCounters after = backend_->counters();
    EXPECT_EQ(after.kv_bytes - before.kv_bytes, 2U * 20 * 2 * static_cast<std::uint64_t>(kv_row_bytes(type, 16))) << to_string(type);
    EXPECT_EQ(after.flops - before.flops, 4U * (20 * 21 / 2) * 6 * 16) << to_string(type);
    before = after;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, AttentionTest, ::testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace fixpoint::kernels
