#include "kernels/cpu/paged_attention.h"

#include <algorithm>

namespace fixpoint::kernels::cpu {

struct PagedAttention::Call {
  const Tensor& q;
  const KvLayer& layer;
  const PagedBatch& batch;
  float scale;
  const Tensor& out;
  KvLayout layout;
  std::int64_t group;  ///< query heads of a KV head

  [[nodiscard]] std::int64_t state_floats() const { return std::int64_t{kAttentionRows} * layout.padded_dim; }
  [[nodiscard]] std::int64_t q_floats() const { return std::int64_t{kAttentionRows} * layout.padded_dim; }
  [[nodiscard]] std::int32_t token(const Chunk& c, std::int32_t row) const {
    return batch.q_indptr[static_cast<std::size_t>(c.seq)] + static_cast<std::int32_t>((c.first_row + row) / group);
  }
  [[nodiscard]] std::int64_t head_offset(const Chunk& c, std::int32_t row, std::int64_t kv_head) const {
    return (kv_head * group + (c.first_row + row) % group) * layout.head_dim;
  }
  [[nodiscard]] std::int32_t limit(const Chunk& c, std::int32_t row) const {
    return batch.positions[static_cast<std::size_t>(token(c, row))];
  }
  // The sub-tile that holds position p.
  [[nodiscard]] std::int32_t sub_tile_of(std::int32_t p) const {
    return p / layout.block_size * layout.sub_tiles + p % layout.block_size / kLanes;
  }
  [[nodiscard]] std::int32_t sub_tiles(const Chunk& c) const {
    std::int32_t last = 0;
    for (std::int32_t r = 0; r < c.rows; ++r) last = std::max(last, limit(c, r));
    return sub_tile_of(last) + 1;
  }
};

void PagedAttention::run(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale,
                         const Tensor& out) {
  const KvLayout layout(layer.shape);
  const Call call{q, layer, batch, scale, out, layout, q.shape[1] / layout.heads};
  plan(call);
  const auto chunks = static_cast<std::int64_t>(chunks_.size());
  const bool long_contexts = num_states_ > chunks;
  if (long_contexts && chunks * layout.heads < 4 * team_.size() && team_.size() > 1) return split_over_threads(call);

  const std::int64_t thread_bytes = (2 * call.state_floats() + call.q_floats()) * 4;
  std::byte* scratch = scratch_.at_least(thread_bytes * team_.size());
  // Later chunks have longer contexts: they go first, so that the threads end together.
  team_.run(chunks * layout.heads, [&](std::int64_t task, int thread) {
    const auto chunk = static_cast<std::size_t>(chunks - 1 - task / layout.heads);
    whole_chunk(call, chunks_[chunk], task % layout.heads, scratch + thread * thread_bytes);
  });
}

void PagedAttention::plan(const Call& call) {
  chunks_.clear();
  num_states_ = 0;
  for (std::int32_t s = 0; s < call.batch.num_seqs(); ++s) {
    const auto i = static_cast<std::size_t>(s);
    const auto rows = static_cast<std::int32_t>((call.batch.q_indptr[i + 1] - call.batch.q_indptr[i]) * call.group);
    for (std::int32_t row = 0; row < rows; row += kAttentionRows) {
      Chunk chunk{s, row, std::min(kAttentionRows, rows - row), 0, num_states_};
      chunk.num_splits = (call.sub_tiles(chunk) + kSplitSubTiles - 1) / kSplitSubTiles;
      num_states_ += chunk.num_splits;
      chunks_.push_back(chunk);
    }
  }
}

void PagedAttention::split(const Call& call, const Chunk& chunk, std::int64_t kv_head, std::int32_t index,
                           float* q_memory, AttentionState& state) const {
  const auto rows = static_cast<std::size_t>(chunk.rows);
  AttentionSplit job{};
  job.rows = table_.attention_rows[rows];
  job.head_dim = call.layout.head_dim;
  job.padded_dim = call.layout.padded_dim;
  job.q = q_memory;
  job.state = &state;
  for (std::int32_t r = 0; r < job.rows; ++r) {
    const bool real = r < chunk.rows;
    const float* from = real ? call.q.row(call.token(chunk, r)) + call.head_offset(chunk, r, kv_head) : nullptr;
    for (std::int32_t d = 0; d < job.head_dim; ++d) q_memory[d * job.rows + r] = real ? from[d] * call.scale : 0.0F;
    job.limits[r] = real ? call.limit(chunk, r) : -1;
  }
  KvSubTile tiles[kSplitSubTiles];
  const std::int32_t first = index * kSplitSubTiles;
  job.num_sub_tiles = std::min(kSplitSubTiles, call.sub_tiles(chunk) - first);
  job.sub_tiles = tiles;
  const std::int32_t first_block = call.batch.block_indptr[static_cast<std::size_t>(chunk.seq)];
  for (std::int32_t t = 0; t < job.num_sub_tiles; ++t) {
    const auto at = static_cast<std::size_t>(first_block + (first + t) / call.layout.sub_tiles);
    tiles[t] = call.layout.sub_tile(call.layer.storage.data(), call.batch.block_ids[at], kv_head, first + t);
  }
  table_.attention[call.layout.type_index][static_cast<std::size_t>(job.rows)](job);
}

void PagedAttention::whole_chunk(const Call& call, const Chunk& chunk, std::int64_t kv_head,
                                 std::byte* scratch) const {
  auto* floats = reinterpret_cast<float*>(scratch);
  float* q_memory = floats + 2 * call.state_floats();
  AttentionState state{};
  AttentionState next{};
  state.sums = floats;
  next.sums = floats + call.state_floats();
  split(call, chunk, kv_head, 0, q_memory, state);
  for (std::int32_t i = 1; i < chunk.num_splits; ++i) {
    split(call, chunk, kv_head, i, q_memory, next);
    table_.merge(state, next, chunk.rows, call.layout.padded_dim);
  }
  finish(call, chunk, kv_head, state);
}

void PagedAttention::split_over_threads(const Call& call) {
  const std::int64_t heads = call.layout.heads;
  const std::int64_t states = num_states_ * heads;
  const std::int64_t state_bytes = static_cast<std::int64_t>(sizeof(AttentionState)) + call.state_floats() * 4;
  const std::int64_t q_bytes = call.q_floats() * 4;
  std::byte* scratch = scratch_.at_least(states * state_bytes + team_.size() * q_bytes);
  const auto state_at = [&](std::int64_t index) {
    auto* sums = reinterpret_cast<float*>(scratch) + index * call.state_floats();
    auto* state = reinterpret_cast<AttentionState*>(scratch + states * call.state_floats() * 4) + index;
    state->sums = sums;
    return state;
  };
  float* q_memory = reinterpret_cast<float*>(scratch + states * state_bytes);
  team_.run(states, [&](std::int64_t task, int thread) {
    const std::int64_t split_index = task / heads;
    const auto after = std::ranges::upper_bound(chunks_, split_index, {}, &Chunk::first_state);
    const Chunk& chunk = *(after - 1);
    split(call, chunk, task % heads, static_cast<std::int32_t>(split_index - chunk.first_state),
          q_memory + thread * call.q_floats(), *state_at(task));
  });
  for (const Chunk& chunk : chunks_) {
    for (std::int64_t head = 0; head < heads; ++head) {
      AttentionState& state = *state_at(chunk.first_state * heads + head);
      for (std::int32_t i = 1; i < chunk.num_splits; ++i) {
        table_.merge(state, *state_at((chunk.first_state + i) * heads + head), chunk.rows, call.layout.padded_dim);
      }
      finish(call, chunk, head, state);
    }
  }
}

void PagedAttention::finish(const Call& call, const Chunk& chunk, std::int64_t kv_head,
                            const AttentionState& state) const {
  for (std::int32_t r = 0; r < chunk.rows; ++r) {
    float* out = call.out.row(call.token(chunk, r)) + call.head_offset(chunk, r, kv_head);
    table_.finish_row(state.sums + std::int64_t{r} * call.layout.padded_dim, state.totals[r], out,
                      call.layout.head_dim);
  }
}

}  // namespace fixpoint::kernels::cpu
