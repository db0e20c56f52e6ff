#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/index_upload.h"

namespace fixpoint::kernels::cuda {

/// The arrays of a PagedBatch on the device.
struct DeviceBatch {
  const std::int32_t* block_indptr = nullptr;
  const std::int32_t* block_ids = nullptr;
  const std::int32_t* positions = nullptr;
  const std::int32_t* slots = nullptr;  ///< [num_tokens] block * block_size + place in the block
};

struct DevicePlan {
  const AttentionTile* tiles = nullptr;
  const AttentionTile* combine = nullptr;
  std::int32_t num_tiles = 0, num_combine = 0, slots = 0;
  const AttentionTile* prefill = nullptr;
  std::int32_t num_prefill = 0;
};

/// Tokens of a sequence that share a block's reads.
struct TileTokens {
  std::int32_t few = 1;      ///< see AttentionPlan::build
  std::int32_t prefill = 0;
  bool operator==(const TileTokens&) const = default;
};

/// How large the arrays of a recorded step are; each at least what the step needs, so that one recording serves many steps.
struct StepBucket {
  std::int32_t tokens = 0;     ///< sequences, too: one token each
  std::int32_t tiles = 0;
  std::int32_t block_ids = 0;
  bool operator==(const StepBucket&) const = default;
  [[nodiscard]] static StepBucket of(const StepArrays& arrays);
};

/// Where the arrays of recorded steps of one bucket lie: a copy of the host's layout, filled anew for every step. What is
/// longer than the step is filled up with entries that do nothing.
class BucketArrays {
 public:
  explicit BucketArrays(const StepBucket& bucket);
  void fill(const StepArrays& arrays, IndexUpload& upload);
  [[nodiscard]] const std::int32_t* tokens() const { return at(tokens_); }
  [[nodiscard]] const std::int32_t* rows() const { return at(rows_); }
  [[nodiscard]] DeviceBatch batch() const { return {at(block_indptr_), at(block_ids_), at(positions_), at(slots_)}; }
  [[nodiscard]] DevicePlan plan() const;

 private:
  [[nodiscard]] const std::int32_t* at(std::size_t word) const { return device_.as<std::int32_t>() + word; }

  StepBucket bucket_;
  std::size_t tiles_, combine_, tokens_, rows_, positions_, slots_, block_indptr_, block_ids_;  // first words
  std::vector<std::int32_t> host_;
  AttentionPlan plan_;
  DeviceMemory device_;
};

/// The arrays of the step that is being computed, uploaded once for all its operations. Arrays of other calls (tests) are
/// uploaded as they come, a plan's batch before the plan.
class CurrentStep {
 public:
  explicit CurrentStep(IndexUpload& upload) : upload_(upload) {}
  void begin(const StepArrays& arrays);
  /// As begin, but what the operations read lies in `bucket`.
  void begin(const StepArrays& arrays, const BucketArrays& bucket);
  void end() { active_ = false; }

  [[nodiscard]] const std::int32_t* tokens(std::span<const std::int32_t> host);
  [[nodiscard]] const std::int32_t* rows(std::span<const std::int32_t> host);
  [[nodiscard]] DeviceBatch batch(const PagedBatch& host);
  [[nodiscard]] DevicePlan plan(const PagedBatch& host, const TileTokens& tokens);

 private:
  [[nodiscard]] DeviceBatch upload(const PagedBatch& host);
  [[nodiscard]] static bool same(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    return a.data() == b.data() && a.size() == b.size();
  }
  [[nodiscard]] bool is_current(const PagedBatch& host) const;

  IndexUpload& upload_;
  bool active_ = false;
  StepArrays arrays_;
  const std::int32_t* tokens_ = nullptr;
  const std::int32_t* rows_ = nullptr;
  DeviceBatch batch_;
  AttentionPlan plan_;
  DevicePlan device_plan_;
  bool plan_is_buckets_ = false;        ///< it serves any tiles: they have one token
  std::optional<TileTokens> planned_;  ///< what device_plan_ is for
  std::vector<std::int32_t> slots_;
};

/// block * block_size + place in the block, for each token of the step.
void token_slots(const PagedBatch& batch, std::span<std::int32_t> slots);

}  // namespace fixpoint::kernels::cuda
