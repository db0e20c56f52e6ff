#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda_backend.h"
#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

constexpr std::int32_t kVocabulary = 50, kHeads = 2, kKvHeads = 1, kDim = 16, kHidden = kHeads * kDim, kBlock = 16;

/// One layer's worth of operations on a backend, as a model calls them.
class OneLayer {
 public:
  /// `in_steps`: the arrays are declared with run_step, else each operation brings its own.
  explicit OneLayer(std::unique_ptr<Backend> backend, bool in_steps = true) : backend_(std::move(backend)), in_steps_(in_steps) {
    Random random(31);
    const auto weight = [&](std::int64_t rows) {
      matrices_.push_back(std::make_unique<HostMatrix>(DType::bf16, rows, kHidden, random));
      const Tensor part = matrices_.back()->tensor();
      return backend_->load_weight({&part, 1});
    };
    embedding_ = weight(kVocabulary);
    qkv_ = weight((kHeads + 2 * kKvHeads) * kDim);
    kv_ = backend_->allocate_kv({64, kBlock, kKvHeads, kDim, KvType::f16});
    Floats norm = random.normal(2 * kDim);
    norm_ = backend_->allocate(norm.size() * sizeof(float));
    backend_->upload(vector(norm), norm_.view(DType::f32, {2 * kDim}));
    for (std::size_t i = 0; i < 4; ++i) rope_.inv_freq.push_back(1.0F / static_cast<float>(1 + 10 * i));
  }

  /// Logits of each row.
  Floats step(const StepArrays& arrays) {
    const std::int64_t n = arrays.batch.num_tokens();
    const std::int64_t r = static_cast<std::int64_t>(arrays.rows.size());
    reserve(backend_->padded_rows(n));
    const auto view = [](const Buffer& b, std::int64_t rows, std::int64_t cols) { return b.view(DType::f32, {rows, cols}); };
    const std::function<void()> operations = [&] {
      ++calls_;
      const Tensor x = view(x_, n, kHidden);
      const Tensor fused = view(fused_, n, kWidth);
      backend_->embed(*embedding_, arrays.tokens, x);
      backend_->matmul(x, *qkv_, nullptr, fused);
      const auto heads = [&](std::int64_t first, std::int64_t count) {
        return Tensor{fused.data + first * kDim * 4, DType::f32, {n, count, kDim}, kWidth};
      };
      const HeadNorm norm{view(norm_, 1, kDim), Tensor::of(norm_.data() + kDim * 4, DType::f32, {kDim}), 1e-6F};
      backend_->rotate_and_store(heads(0, kHeads), heads(kHeads, kKvHeads), heads(kHeads + kKvHeads, kKvHeads), &norm,
                                 rope_, arrays.batch, kv_);
      for (int layer = 0; layer < 2; ++layer) {
        backend_->attention(heads(0, kHeads), kv_, arrays.batch, 0.25F, attention_.view(DType::f32, {n, kHeads, kDim}));
      }
      backend_->gather(view(attention_, n, kHidden), arrays.rows, view(picked_, r, kHidden));
      backend_->matmul(view(picked_, r, kHidden), *embedding_, nullptr, view(logits_, r, kVocabulary));
    };
    in_steps_ ? backend_->run_step(arrays, operations) : operations();
    Floats out = poison(r * kVocabulary);
    backend_->download(view(logits_, r, kVocabulary), matrix(out, r, kVocabulary));
    backend_->synchronize();
    return out;
  }
  [[nodiscard]] int calls() const { return calls_; }
  [[nodiscard]] Backend& backend() { return *backend_; }

 private:
  static constexpr std::int64_t kWidth = (kHeads + 2 * kKvHeads) * kDim;

  void reserve(std::int64_t rows) {
    if (rows <= reserved_) return;
    reserved_ = rows;
    const auto floats = [&](std::int64_t cols) { return backend_->allocate(static_cast<std::size_t>(rows * cols) * 4); };
    x_ = floats(kHidden);
    fused_ = floats(kWidth);
    attention_ = floats(kHidden);
    picked_ = floats(kHidden);
    logits_ = floats(kVocabulary);
  }

  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<HostMatrix>> matrices_;
  std::unique_ptr<Weight> embedding_, qkv_;
  KvLayer kv_;
  Rope rope_;
  Buffer norm_, x_, fused_, attention_, picked_, logits_;
  std::int64_t reserved_ = 0;
  bool in_steps_;
  int calls_ = 0;
};

/// `count` sequences that grow by a token a step.
struct Growing {
  std::int32_t count;
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> tokens, q_indptr, block_indptr, block_ids, last_block_len, positions, rows;

  explicit Growing(std::int32_t n) : count(n), lengths(static_cast<std::size_t>(n)) {}

  StepArrays next(std::int32_t chunk, int step) {
    tokens.clear(), positions.clear(), block_ids.clear(), last_block_len.clear(), rows.clear();
    q_indptr.assign(1, 0), block_indptr.assign(1, 0);
    for (std::int32_t s = 0; s < count; ++s) {
      std::int32_t& length = lengths[static_cast<std::size_t>(s)];
      for (std::int32_t i = 0; i < chunk; ++i, ++length) {
        positions.push_back(length);
        tokens.push_back((7 * step + 11 * s + length) % kVocabulary);
      }
      const std::int32_t blocks = (length + kBlock - 1) / kBlock;
      for (std::int32_t b = 0; b < blocks; ++b) block_ids.push_back(s + b * count);
      q_indptr.push_back(static_cast<std::int32_t>(tokens.size()));
      block_indptr.push_back(static_cast<std::int32_t>(block_ids.size()));
      last_block_len.push_back(length - (blocks - 1) * kBlock);
      rows.push_back(q_indptr.back() - 1);
    }
    return arrays();
  }

  /// The same step with `more` blocks at the end of each table, beyond what its tokens see.
  StepArrays with_longer_tables(std::int32_t more) {
    std::vector<std::int32_t> ids;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      ids.insert(ids.end(), block_ids.begin() + block_indptr[s], block_ids.begin() + block_indptr[s + 1]);
      ids.insert(ids.end(), static_cast<std::size_t>(more), 1);
    }
    block_ids = std::move(ids);
    for (std::size_t s = 0; s < block_indptr.size(); ++s) block_indptr[s] += static_cast<std::int32_t>(s) * more;
    return arrays();
  }

 private:
  [[nodiscard]] StepArrays arrays() const {
    return {tokens, {kBlock, q_indptr, block_indptr, block_ids, last_block_len, positions}, rows};
  }
};

class CudaStepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_status().devices.empty()) GTEST_SKIP() << "no CUDA device: " << cuda_status().reason;
  }
};

TEST_F(CudaStepTest, RecordedStepsGiveTheBitsOfPlainOnes) {
  OneLayer recorded(make_cuda_backend({.graphs = true}));
  OneLayer plain(make_cuda_backend({.graphs = false}));
  Growing sequences(3);
  for (int step = 0; step < 16; ++step) {
    // A prompt beyond one part of the context, then single tokens.
    const StepArrays arrays = sequences.next(step == 0 ? 250 : 1, step);
    const Floats actual = recorded.step(arrays);
    const Floats expected = plain.step(arrays);
    ASSERT_TRUE(same_bits(actual.data(), expected.data(), static_cast<std::int64_t>(actual.size()))) << "step " << step;
    EXPECT_EQ(recorded.backend().counters().flops, plain.backend().counters().flops) << "step " << step;
    EXPECT_EQ(recorded.backend().counters().kv_bytes, plain.backend().counters().kv_bytes) << "step " << step;
    EXPECT_EQ(recorded.backend().counters().weight_bytes, plain.backend().counters().weight_bytes) << "step " << step;
  }
  EXPECT_EQ(plain.calls(), 16);
  EXPECT_LT(recorded.calls(), 10) << "most steps repeat a recording";
}

TEST_F(CudaStepTest, PromptsInAStepGiveTheBitsOfOperationsOnTheirOwn) {
  for (const CudaProducts products : {CudaProducts::exact, CudaProducts::fastest}) {
    OneLayer stepped(make_cuda_backend({.products = products}));
    OneLayer plain(make_cuda_backend({.products = products}), false);
    Growing sequences(2);
    for (const std::int32_t chunk : {40, 3, 1, 70, 1}) {
      const StepArrays arrays = sequences.next(chunk, chunk);
      const Floats actual = stepped.step(arrays);
      ASSERT_TRUE(same_bits(actual.data(), plain.step(arrays).data(), static_cast<std::int64_t>(actual.size()))) << chunk << " tokens each";
    }
  }
}

// More block ids than the upload's ring has room for beside what else the step has, and then more than it holds.
TEST_F(CudaStepTest, LongBlockTablesLeaveTheOtherArraysAlone) {
  OneLayer stepped(make_cuda_backend({.graphs = false}));
  OneLayer recorded(make_cuda_backend({.graphs = true}));
  OneLayer plain(make_cuda_backend({.graphs = false}), false);
  OneLayer brief(make_cuda_backend({.graphs = false}));
  Growing sequences(3);
  int step = 0;
  for (const std::int32_t more : {0, 200'000, 250'000, 400'000, 10, 400'000}) {
    const Floats expected = brief.step(sequences.next(1, step++));
    const StepArrays arrays = sequences.with_longer_tables(more);
    for (OneLayer* tested : {&stepped, &recorded, &plain}) {
      ASSERT_TRUE(same_bits(tested->step(arrays).data(), expected.data(), static_cast<std::int64_t>(expected.size()))) << 3 * more << " blocks";
    }
  }
}

TEST_F(CudaStepTest, ABatchOfAnotherSizeFindsItsOwnRecording) {
  OneLayer recorded(make_cuda_backend({.graphs = true}));
  OneLayer plain(make_cuda_backend({.graphs = false}));
  std::vector<Growing> batches;
  for (const std::int32_t n : {1, 2, 3, 5}) batches.emplace_back(n);
  for (int step = 0; step < 24; ++step) {
    const StepArrays arrays = batches[static_cast<std::size_t>(step) % batches.size()].next(1, step);
    const Floats actual = recorded.step(arrays);
    ASSERT_TRUE(same_bits(actual.data(), plain.step(arrays).data(), static_cast<std::int64_t>(actual.size()))) << "step " << step;
  }
}

TEST_F(CudaStepTest, NewMemoryMakesRecordingsVoid) {
  OneLayer recorded(make_cuda_backend({.graphs = true}));
  Growing sequences(1);
  for (int step = 0; step < 4; ++step) static_cast<void>(recorded.step(sequences.next(1, step)));
  const int before = recorded.calls();
  static_cast<void>(recorded.step(sequences.next(1, 4)));
  EXPECT_EQ(recorded.calls(), before);
  const Buffer more = recorded.backend().allocate(64);
  static_cast<void>(recorded.step(sequences.next(1, 5)));
  EXPECT_EQ(recorded.calls(), before + 1);
}

}  // namespace
}  // namespace fixpoint::kernels
