#include <span>

#include "tests/kernels/attention_fixture.h"

namespace fixpoint::kernels {
namespace {

/// A row of heads for each token, with something between one token's and the next's.
struct HeadRows {
  std::int64_t heads, dim;
  Floats values;

  HeadRows(Random& random, std::int64_t tokens, std::int64_t h, std::int64_t d)
      : heads(h), dim(d), values(random.normal(tokens * (h * d + kGap))) {}
  /// Tokens first..last.
  [[nodiscard]] Tensor tensor(std::int64_t first, std::int64_t last) {
    const std::int64_t stride = heads * dim + kGap;
    Tensor t = Tensor::of(values.data() + first * stride, DType::f32, {last - first, heads, dim});
    t.row_stride = stride;
    return t;
  }

 private:
  static constexpr std::int64_t kGap = 7;
};

/// Queries, keys and values of a call's tokens.
struct Tokens {
  std::int32_t count;
  HeadRows q, k, v;

  Tokens(Random& random, std::int32_t n, std::int64_t query_heads, const KvShape& shape)
      : count(n),
        q(random, n, query_heads, shape.head_dim),
        k(random, n, shape.num_kv_heads, shape.head_dim),
        v(random, n, shape.num_kv_heads, shape.head_dim) {}
};

Rope rope_of(RopePairing pairing, std::int32_t pairs) {
  Rope rope{pairing, {}, 1.25F};
  for (std::int32_t i = 0; i < pairs; ++i) {
    rope.inv_freq.push_back(std::pow(1e4F, -static_cast<float>(i) / static_cast<float>(pairs)));
  }
  return rope;
}

class RotateAndStoreTest : public BackendTest {
 protected:
  void SetUp() override {
    if (!GetParam().invariant) GTEST_SKIP() << GetParam().name << " differs in its products only";
    BackendTest::SetUp();
  }

  static void run(Backend& backend, Tokens& t, const HeadNorm* norm, const Rope& rope, const PagedBatch& batch,
                  KvLayer& layer) {
    run(backend, t, 0, t.count, norm, rope, batch, layer);
  }
  /// Tokens first..last of `t`, which are the batch's.
  static void run(Backend& backend, Tokens& t, std::int32_t first, std::int32_t last, const HeadNorm* norm,
                  const Rope& rope, const PagedBatch& batch, KvLayer& layer) {
    backend.rotate_and_store(t.q.tensor(first, last), t.k.tensor(first, last), t.v.tensor(first, last), norm, rope,
                             batch, layer);
  }

  /// All bytes zero: some belong to no token.
  KvLayer empty_layer(const KvShape& shape) {
    KvLayer layer = backend_->allocate_kv(shape);
    std::vector<std::uint16_t> zeros(words(shape));
    backend_->upload(view(zeros), layer.storage.view(DType::f16, {static_cast<std::int64_t>(zeros.size())}));
    backend_->synchronize();
    return layer;
  }
  std::vector<std::uint16_t> stored(const KvLayer& layer) {
    std::vector<std::uint16_t> out(words(layer.shape));
    backend_->download(layer.storage.view(DType::f16, {static_cast<std::int64_t>(out.size())}), view(out));
    backend_->synchronize();
    return out;
  }

 private:
  [[nodiscard]] std::size_t words(const KvShape& shape) const { return backend_->kv_bytes(shape) / 2; }
  static Tensor view(std::vector<std::uint16_t>& values) {
    return Tensor::of(values.data(), DType::f16, {static_cast<std::int64_t>(values.size())});
  }
};

TEST_P(RotateAndStoreTest, HeadsMatchTheReferenceInBothPairings) {
  Random random(27);
  constexpr std::int32_t kDim = 80;
  const KvShape shape{6, 16, 3, kDim, KvType::f32};
  Step step{16};
  for (const std::int32_t position : {0, 1, 5000, 17, 32000, 3}) {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(position / 16 + 1));
    blocks.back() = static_cast<std::int32_t>(step.positions.size());  // its own; what its past holds does not matter
    step.add(position + 1, 1, blocks);
  }
  Floats q_weight = random.normal(kDim);
  Floats k_weight = random.normal(kDim);
  const HeadNorm norm{vector(q_weight), vector(k_weight), 1e-6F};
  KvLayer layer = backend_->allocate_kv(shape);
  KvLayer reference_layer = reference_->allocate_kv(shape);
  for (const RopePairing pairing : {RopePairing::half_split, RopePairing::adjacent}) {
    for (const std::int32_t pairs : {0, 8, 20, 32, 40}) {  // heads are rotated not at all, partly or whole
      for (const HeadNorm* used : {static_cast<const HeadNorm*>(nullptr), &norm}) {
        Tokens actual(random, 6, 5, shape);
        Tokens expected = actual;
        run(*backend_, actual, used, rope_of(pairing, pairs), step.batch(), layer);
        run(*reference_, expected, used, rope_of(pairing, pairs), step.batch(), reference_layer);
        const double bound = used != nullptr ? 5e-6 : 2e-6;
        EXPECT_LT(worst_error(actual.q.values, expected.q.values), bound) << pairs << " pairs";
        EXPECT_LT(worst_error(actual.k.values, expected.k.values), bound) << pairs << " pairs";
        EXPECT_EQ(actual.v.values, expected.v.values);
      }
    }
  }
}

TEST_P(RotateAndStoreTest, GivesTheBitsOfNormRotationAndStoreOneAfterTheOther) {
  Random random(30);
  for (const KvType type : kKvTypes) {
    for (const std::int32_t dim : {33, 64}) {
      const KvShape shape{4, 4, 3, dim, type};
      Step step{4};
      step.add(6, 6, {2, 0});
      step.add(3, 1, {3});
      Floats q_weight = random.normal(dim);
      Floats k_weight = random.normal(dim);
      const HeadNorm norm{vector(q_weight), vector(k_weight), 1e-6F};
      const Rope rope = rope_of(RopePairing::half_split, 16);
      Tokens together(random, 7, 3, shape);
      Tokens apart = together;
      KvLayer layer = empty_layer(shape);
      run(*backend_, together, &norm, rope, step.batch(), layer);

      KvLayer other = empty_layer(shape);
      KvLayer layer_apart = empty_layer(shape);
      run(*backend_, apart, &norm, {}, step.batch(), other);
      run(*backend_, apart, nullptr, rope, step.batch(), other);
      Floats none;
      backend_->rotate_and_store(cube(none, 7, 0, dim), apart.k.tensor(0, 7), apart.v.tensor(0, 7), nullptr, {},
                                 step.batch(), layer_apart);
      EXPECT_EQ(together.q.values, apart.q.values) << to_string(type) << " dim " << dim;
      EXPECT_EQ(together.k.values, apart.k.values) << to_string(type) << " dim " << dim;
      EXPECT_TRUE(stored(layer) == stored(layer_apart)) << to_string(type) << " dim " << dim;
      EXPECT_FALSE(stored(layer) == stored(empty_layer(shape)));
    }
  }
}

// As one prompt, in chunks, and as the tokens of as many sequences.
TEST_P(RotateAndStoreTest, ATokensBitsDoNotDependOnItsBatch) {
  constexpr std::int32_t kTokens = 520;
  constexpr std::int32_t kBlock = 16;
  Random random(31);
  const std::vector<std::int32_t> blocks = [&] {
    std::vector<std::int32_t> ids((kTokens + kBlock - 1) / kBlock);
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::shuffle(ids, random.engine());
    return ids;
  }();
  const Rope rope = rope_of(RopePairing::adjacent, 10);
  for (const KvType type : slow() ? std::span(kKvTypes).last(1) : std::span(kKvTypes)) {
    const KvShape shape{static_cast<std::int32_t>(blocks.size()), kBlock, 2, 20, type};
    Tokens prompt(random, kTokens, 5, shape);
    Tokens chunks = prompt;
    Tokens single = prompt;
    KvLayer prompt_layer = empty_layer(shape);
    Step whole{kBlock};
    whole.add(kTokens, kTokens, blocks);
    run(*backend_, prompt, nullptr, rope, whole.batch(), prompt_layer);

    KvLayer chunk_layer = empty_layer(shape);
    for (std::int32_t first = 0, last = 1; first < kTokens; first = last, last = std::min(kTokens, 3 * last)) {
      Step chunk{kBlock};
      chunk.add(last, last - first, blocks);
      run(*backend_, chunks, first, last, nullptr, rope, chunk.batch(), chunk_layer);
    }
    KvLayer single_layer = empty_layer(shape);
    Step each{kBlock};
    for (std::int32_t position = 0; position < kTokens; ++position) each.add(position + 1, 1, blocks);
    run(*backend_, single, nullptr, rope, each.batch(), single_layer);

    for (const auto& [tokens, layer] : {std::pair(&chunks, &chunk_layer), std::pair(&single, &single_layer)}) {
      EXPECT_TRUE(tokens->q.values == prompt.q.values) << to_string(type);
      EXPECT_TRUE(tokens->k.values == prompt.k.values) << to_string(type);
      EXPECT_TRUE(stored(*layer) == stored(prompt_layer)) << to_string(type);
    }
  }
}

TEST_P(RotateAndStoreTest, NoTokensIsNoWork) {
  KvLayer layer = backend_->allocate_kv({1, 16, 2, 16, KvType::f16});
  Floats none;
  const Step step{16};
  backend_->rotate_and_store(cube(none, 0, 2, 16), cube(none, 0, 2, 16), cube(none, 0, 2, 16), nullptr,
                             {.inv_freq = {1.0F}}, step.batch(), layer);
  backend_->synchronize();
}

TEST_P(RotateAndStoreTest, RefusesOtherShapes) {
  KvLayer layer = backend_->allocate_kv({1, 16, 1, 16, KvType::f16});
  Floats x(4 * 16, 1.0F);
  Floats short_weight(8, 1.0F);
  Floats weight(16, 1.0F);
  Step step{16};
  step.add(1, 1, {0});
  const auto run_with = [&](std::int64_t q_dim, std::int64_t kv_heads, const HeadNorm* norm, const Rope& rope) {
    backend_->rotate_and_store(cube(x, 1, 2, q_dim), cube(x, 1, kv_heads, 16), cube(x, 1, 1, 16), norm, rope,
                               step.batch(), layer);
  };
  EXPECT_THROW(run_with(8, 1, nullptr, {}), std::invalid_argument);
  EXPECT_THROW(run_with(16, 2, nullptr, {}), std::invalid_argument);
  const HeadNorm norm{vector(weight), vector(short_weight), 1e-6F};
  EXPECT_THROW(run_with(16, 1, &norm, {}), std::invalid_argument);
  EXPECT_THROW(run_with(16, 1, nullptr, rope_of(RopePairing::half_split, 9)), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, RotateAndStoreTest, ::testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace fixpoint::kernels
