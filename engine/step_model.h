#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/tokenizer_spec.h"
#include "kernels/backend.h"
#include "kernels/row_choice.h"

namespace fixpoint::engine {

/// What one step computes: the step's tokens, sequence after sequence, and where their keys and values go.
struct StepInput {
  std::span<const TokenId> tokens;             ///< [batch.num_tokens()]
  kernels::PagedBatch batch;                   ///< views, valid during the call
  std::span<const std::int32_t> logit_rows;    ///< rows of `tokens` whose logits are wanted, ascending
  /// For those among logit_rows (`row` counts them, ascending) where a token will do; left out where the model doesn't choose.
  std::span<const kernels::RowChoice> choices;
};

/// What a step gives; views, valid until the next call of the model.
struct StepOutput {
  std::span<const float> logits;         ///< [rows, vocab_size] on the host: of those logit_rows that have no token in `chosen`
  std::span<const std::int32_t> chosen;  ///< tokens of `choices`, as kernels::Backend::choose gives them; none where the model doesn't choose
};

/// The forward pass as the engine sees it. `Model` is the real one; tests put a deterministic fake here.
/// One thread calls at a time. Failures of the device throw; the engine fails the requests in flight and goes on.
class StepModel {
 public:
  virtual ~StepModel() = default;

  /// Width of a row of logits; may be larger than the tokenizer's vocabulary (padding).
  [[nodiscard]] virtual std::int64_t vocab_size() const = 0;
  /// Longest sequence, prompt and output together.
  [[nodiscard]] virtual std::int64_t context_length() const = 0;
  /// Bytes that one block of `block_size` tokens takes over all layers, as it is laid out: padding included.
  [[nodiscard]] virtual std::size_t kv_bytes_per_block(int block_size, kernels::KvType type) const = 0;
  /// Bytes of weights in mapped files: they are read at every step, though the system counts them as available memory.
  [[nodiscard]] virtual std::size_t mapped_weight_bytes() const { return 0; }
  /// Called once, before the first forward.
  virtual void allocate_kv(int num_blocks, int block_size, kernels::KvType type) = 0;
  /// Whole blocks, all layers; done before the keys and values of the next forward are written.
  virtual void copy_blocks(std::span<const kernels::BlockCopy> copies) = 0;
  /// Whether `forward` chooses tokens. Always the same, so that nobody need state choices where nobody makes them.
  [[nodiscard]] virtual bool chooses_tokens() const { return false; }
  [[nodiscard]] virtual StepOutput forward(const StepInput& input) = 0;
  /// As kernels::Backend's: the engine chooses tokens side by side where the model doesn't.
  [[nodiscard]] virtual int num_threads() const { return 1; }
  virtual void share(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
  }
  /// Work since construction.
  [[nodiscard]] virtual kernels::OpCounters counters() const = 0;
};

}  // namespace fixpoint::engine
