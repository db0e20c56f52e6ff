#include "kernels/cuda/step_arrays.h"

#include <algorithm>
#include <bit>

namespace fixpoint::kernels::cuda {
namespace {

constexpr std::size_t kTileWords = sizeof(AttentionTile) / sizeof(std::int32_t);

std::int32_t power_of_two(std::int32_t n) { return static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(std::max(n, 1)))); }

DevicePlan upload_plan(const AttentionPlan& plan, IndexUpload& upload) {
  const auto count = [](const std::vector<AttentionTile>& tiles) { return static_cast<std::int32_t>(tiles.size()); };
  return {.tiles = upload.put<AttentionTile>(plan.tiles),
          .combine = upload.put<AttentionTile>(plan.combine),
          .num_tiles = count(plan.tiles),
          .num_combine = count(plan.combine),
          .slots = plan.slots,
          .prefill = upload.put<AttentionTile>(plan.prefill),
          .num_prefill = count(plan.prefill)};
}

// Arrays of a batch and of its plan.
constexpr std::size_t kBatchArrays = 4 + 3;

/// The most bytes that they have. A token has one place in the plan, whole, to be combined or for prefill; the parts of those
/// that are combined are bounded.
std::size_t batch_bytes(const PagedBatch& batch) {
  return batch.block_indptr.size_bytes() + batch.block_ids.size_bytes() + 2 * batch.positions.size_bytes() +
         (batch.positions.size() + kMaxSlots) * sizeof(AttentionTile);
}

}  // namespace

void token_slots(const PagedBatch& batch, std::span<std::int32_t> slots) {
  for (std::int32_t s = 0; s < batch.num_seqs(); ++s) {
    const auto i = static_cast<std::size_t>(s);
    for (auto t = static_cast<std::size_t>(batch.q_indptr[i]); t < static_cast<std::size_t>(batch.q_indptr[i + 1]); ++t) {
      const std::int32_t position = batch.positions[t];
      const std::int32_t block = batch.block_ids[static_cast<std::size_t>(batch.block_indptr[i] + position / batch.block_size)];
      slots[t] = block * batch.block_size + position % batch.block_size;
    }
  }
}

StepBucket StepBucket::of(const StepArrays& arrays) {
  std::int32_t tiles = 0;
  for (const std::int32_t position : arrays.batch.positions) tiles += position / kSplitPositions + 1;
  return {power_of_two(arrays.batch.num_tokens()), power_of_two(tiles), power_of_two(static_cast<std::int32_t>(arrays.batch.block_ids.size()))};
}

BucketArrays::BucketArrays(const StepBucket& bucket) : bucket_(bucket) {
  std::size_t words = 0;
  const auto place = [&](std::size_t count) {
    const std::size_t first = words;
    words += (count + 3) / 4 * 4;
    return first;
  };
  const auto tokens = static_cast<std::size_t>(bucket.tokens);
  tiles_ = place(static_cast<std::size_t>(bucket.tiles) * kTileWords);
  combine_ = place(tokens * kTileWords);
  tokens_ = place(tokens);
  rows_ = place(tokens);
  positions_ = place(tokens);
  slots_ = place(tokens);
  block_indptr_ = place(tokens + 1);
  block_ids_ = place(static_cast<std::size_t>(bucket.block_ids));
  host_.resize(words);
  device_.reserve(words * sizeof(std::int32_t));
}

void BucketArrays::fill(const StepArrays& arrays, IndexUpload& upload) {
  const PagedBatch& batch = arrays.batch;
  std::ranges::fill(host_, -1);  // a token, row, slot or sequence of -1 is no work
  const auto copy = [&](std::span<const std::int32_t> from, std::size_t to) { std::ranges::copy(from, host_.begin() + static_cast<std::ptrdiff_t>(to)); };
  copy(arrays.tokens, tokens_);
  copy(arrays.rows, rows_);
  std::fill_n(host_.begin() + static_cast<std::ptrdiff_t>(positions_), bucket_.tokens, 0);
  copy(batch.positions, positions_);
  copy(batch.block_indptr, block_indptr_);
  copy(batch.block_ids, block_ids_);
  token_slots(batch, std::span(host_).subspan(slots_, static_cast<std::size_t>(batch.num_tokens())));
  plan_.build(batch, 1);
  const auto copy_tiles = [&](std::span<const AttentionTile> from, std::size_t to) {
    std::ranges::copy(std::as_bytes(from), std::as_writable_bytes(std::span(host_).subspan(to)).begin());
  };
  copy_tiles(plan_.tiles, tiles_);
  copy_tiles(plan_.combine, combine_);
  upload.put_at(device_.data(), host_.data(), host_.size() * sizeof(std::int32_t));
}

DevicePlan BucketArrays::plan() const {
  return {.tiles = reinterpret_cast<const AttentionTile*>(at(tiles_)),
          .combine = reinterpret_cast<const AttentionTile*>(at(combine_)),
          .num_tiles = bucket_.tiles,
          .num_combine = bucket_.tokens,
          .slots = std::min(bucket_.tiles, kMaxSlots)};
}

void CurrentStep::begin(const StepArrays& arrays) {
  arrays_ = arrays;
  upload_.reserve(arrays.tokens.size_bytes() + arrays.rows.size_bytes() + batch_bytes(arrays.batch), 2 + kBatchArrays);
  tokens_ = upload_.put(arrays.tokens);
  rows_ = upload_.put(arrays.rows);
  batch_ = upload(arrays.batch);
  planned_.reset();
  plan_is_buckets_ = false;
  active_ = true;
}

void CurrentStep::begin(const StepArrays& arrays, const BucketArrays& bucket) {
  arrays_ = arrays;
  tokens_ = bucket.tokens();
  rows_ = bucket.rows();
  batch_ = bucket.batch();
  device_plan_ = bucket.plan();
  plan_is_buckets_ = true;
  active_ = true;
}

DeviceBatch CurrentStep::upload(const PagedBatch& host) {
  slots_.resize(host.positions.size());
  token_slots(host, slots_);
  return {upload_.put(host.block_indptr), upload_.put(host.block_ids), upload_.put(host.positions), upload_.put<std::int32_t>(slots_)};
}

bool CurrentStep::is_current(const PagedBatch& host) const {
  return active_ && same(host.positions, arrays_.batch.positions) && same(host.block_ids, arrays_.batch.block_ids) &&
         same(host.block_indptr, arrays_.batch.block_indptr) && same(host.q_indptr, arrays_.batch.q_indptr);
}

const std::int32_t* CurrentStep::tokens(std::span<const std::int32_t> host) {
  return active_ && same(host, arrays_.tokens) ? tokens_ : upload_.put(host);
}

const std::int32_t* CurrentStep::rows(std::span<const std::int32_t> host) {
  return active_ && same(host, arrays_.rows) ? rows_ : upload_.put(host);
}

DeviceBatch CurrentStep::batch(const PagedBatch& host) {
  if (is_current(host)) return batch_;
  upload_.reserve(batch_bytes(host), kBatchArrays);
  return upload(host);
}

DevicePlan CurrentStep::plan(const PagedBatch& host, const TileTokens& tokens) {
  const bool current = is_current(host);
  if (current && (plan_is_buckets_ || planned_ == tokens)) return device_plan_;
  plan_.build(host, tokens.few, tokens.prefill);
  const DevicePlan plan = upload_plan(plan_, upload_);
  if (current) {
    device_plan_ = plan;
    planned_ = tokens;
  }
  return plan;
}

}  // namespace fixpoint::kernels::cuda
