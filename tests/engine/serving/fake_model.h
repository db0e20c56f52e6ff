#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/step_model.h"

namespace fixpoint::engine::testing {

/// A model whose logits are a hash of the whole attended context, read through the block tables. Each slot of each block
/// remembers which token at which position was written to it, so a wrong table, a stale block, a missing copy or two
/// writers of one slot are found out: as an exception or as other output.
class FakeModel : public StepModel {
 public:
  struct Shape {
    std::int64_t vocab = 64;    ///< ids the tokenizer knows
    std::int64_t padding = 0;   ///< rows above them, with the highest logits of all
    std::int64_t context = 4096;
  };

  explicit FakeModel(Shape shape) : shape_(shape) {}

  [[nodiscard]] std::int64_t vocab_size() const override { return shape_.vocab + shape_.padding; }
  [[nodiscard]] std::int64_t context_length() const override { return shape_.context; }
  [[nodiscard]] std::size_t kv_bytes_per_block(int block_size, kernels::KvType) const override {
    return static_cast<std::size_t>(block_size) * 8;
  }
  void allocate_kv(int num_blocks, int block_size, kernels::KvType type) override;
  void copy_blocks(std::span<const kernels::BlockCopy> copies) override;
  [[nodiscard]] bool chooses_tokens() const override { return chooses; }
  [[nodiscard]] StepOutput forward(const StepInput& input) override;
  [[nodiscard]] kernels::OpCounters counters() const override { return work_; }

  /// What `forward` gives for the last of `tokens`, from the tokens alone: the oracle.
  [[nodiscard]] std::vector<float> logits_after(std::span<const TokenId> tokens) const;
  /// Greedy continuation by the oracle, at most `n` tokens, ending with `stop` where it comes up.
  [[nodiscard]] std::vector<TokenId> continue_greedily(std::vector<TokenId> prompt, int n, TokenId stop = -1) const;

  /// Called at the start of every forward; may throw.
  std::function<void(const StepInput&)> on_forward;
  /// May change a row of logits before it is handed out; gets the context's tokens.
  std::function<void(std::span<const TokenId> context, std::span<float> row)> on_row;
  /// Chooses tokens where it may, as a device does, and gives no logits for them. Set before it serves.
  bool chooses = false;
  /// So many threads share the engine's work. Set before it serves.
  int threads = 1;
  [[nodiscard]] int num_threads() const override { return threads; }
  void share(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body) override;
  std::atomic<int> shared_tasks{0};
  std::atomic<int> chosen_rows{0};
  std::atomic<int> stated_choices{0};  ///< of all steps, made or not

 private:
  struct Slot {
    TokenId token = -1;
    std::int32_t position = -1;
    std::uint64_t written_in = 0;
  };
  [[nodiscard]] std::vector<TokenId> context_of(const kernels::PagedBatch& batch, std::int32_t sequence, std::int32_t length) const;
  void write(const StepInput& input, std::int32_t sequence);
  [[nodiscard]] StepOutput output(const StepInput& input);
  void fill_row(std::span<const TokenId> context, std::span<float> row) const;

  Shape shape_;
  int block_size_ = 0;
  std::uint64_t step_ = 0;
  std::vector<Slot> slots_;
  std::vector<float> logits_;
  std::vector<std::int32_t> chosen_;
  kernels::OpCounters work_;
};

}  // namespace fixpoint::engine::testing
