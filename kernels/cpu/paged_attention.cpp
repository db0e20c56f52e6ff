#include "kernels/cpu/paged_attention.h"

#include <algorithm>
#include <vector>

namespace fixpoint::kernels::cpu {
namespace {

/// Rows of a piece: their running sums and a split's keys and values fit a core's second-level cache.
constexpr std::int64_t kMostPieceRows = 128;

}  // namespace

struct PagedAttention::Call {
  const Tensor& q;
  const KvLayer& layer;
  const PagedBatch& batch;
  float scale;
  const Tensor& out;
  KvLayout layout;
  std::int32_t group;  ///< query heads of a KV head
  const std::vector<AttentionPlan::Member>& members;

  /// Calls visit(member, place in the piece, token, head of the group) for each row of the piece.
  template <class Visit>
  void each_row(const Piece& piece, Visit visit) const {
    const std::int32_t end = piece.first_row + piece.rows;
    std::int32_t row = piece.first_row;
    for (auto m = static_cast<std::size_t>(piece.first_member); row < end; ++m) {
      const std::int32_t last = std::min(end, members[m + 1].first_row);
      const std::int32_t first_token = batch.q_indptr[static_cast<std::size_t>(members[m].seq)];
      std::int32_t token = first_token + (row - members[m].first_row) / group;
      std::int32_t head = (row - members[m].first_row) % group;
      for (; row < last; ++row) {
        visit(members[m], row - piece.first_row, token, head);
        if (++head < group) continue;
        head = 0;
        ++token;
      }
    }
  }
  [[nodiscard]] std::int64_t head_offset(std::int64_t kv_head, std::int32_t head) const {
    return (kv_head * group + head) * layout.head_dim;
  }
  [[nodiscard]] std::int32_t position(std::int32_t token) const { return batch.positions[static_cast<std::size_t>(token)]; }
};

/// Query rows that read a split together: the same blocks, of which `seq` has them.
struct PagedAttention::Rows {
  std::int32_t seq = 0;
  int count = 0;
  std::int32_t last_position = 0;
  struct Row {
    std::int32_t place, token, head;
  } row[kAttentionRows];
};

void PagedAttention::run(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale,
                         const Tensor& out) {
  const KvLayout layout(layer.shape);
  const auto group = static_cast<std::int32_t>(q.shape[1] / layout.heads);
  const Call call{q, layer, batch, scale, out, layout, group, plan_.members()};
  plan(call);
  const auto& pieces = plan_.pieces();
  const auto tasks = static_cast<std::int64_t>(pieces.size()) * layout.heads;
  const bool long_contexts = plan_.num_splits() > static_cast<std::int64_t>(pieces.size());
  if (long_contexts && tasks < 4 * team_.size() && team_.size() > 1) return split_over_threads(call);

  std::int64_t most_rows = 0;
  for (const Piece& piece : pieces) most_rows = std::max<std::int64_t>(most_rows, piece.rows);
  const std::int64_t row_bytes = (most_rows * static_cast<std::int64_t>(sizeof(AttentionRow)) + 63) / 64 * 64;
  const std::int64_t thread_bytes = row_bytes + (most_rows + 2 * kAttentionRows) * layout.padded_dim * 4;
  std::byte* scratch = scratch_.at_least(thread_bytes * team_.size());
  team_.run(tasks, [&](std::int64_t task, int thread) {
    whole_piece(call, pieces[static_cast<std::size_t>(task / layout.heads)], task % layout.heads,
                scratch + thread * thread_bytes);
  });
}

// Pieces are as large as leaves every thread several of them.
void PagedAttention::plan(const Call& call) {
  if (planned_) return;
  const std::int64_t rows = std::int64_t{call.batch.num_tokens()} * call.group;
  const std::int64_t fair = rows * call.layout.heads / (4 * team_.size()) / kAttentionRows * kAttentionRows;
  const std::int64_t most_rows = std::clamp<std::int64_t>(fair, kAttentionRows, kMostPieceRows);
  plan_.make(call.batch, call.layout, call.group, static_cast<std::int32_t>(most_rows));
  planned_ = in_step_;
}

void PagedAttention::compute(const Call& call, const Rows& rows, std::int64_t kv_head, std::int32_t index, float* q_memory,
                             AttentionState& state) const {
  AttentionSplit job{};
  job.rows = table_.attention_rows[static_cast<std::size_t>(rows.count)];
  job.head_dim = call.layout.head_dim;
  job.padded_dim = call.layout.padded_dim;
  job.q = q_memory;
  job.state = &state;
  for (std::int32_t r = 0; r < job.rows; ++r) {
    const bool real = r < rows.count;
    const float* from = real ? call.q.row(rows.row[r].token) + call.head_offset(kv_head, rows.row[r].head) : nullptr;
    for (std::int32_t d = 0; d < job.head_dim; ++d) q_memory[d * job.rows + r] = real ? from[d] * call.scale : 0.0F;
    job.limits[r] = real ? call.position(rows.row[r].token) : -1;
  }
  if (job.head_dim % 2 == 1) std::fill_n(q_memory + job.head_dim * job.rows, job.rows, 0.0F);
  KvSubTile tiles[kSplitSubTiles];
  const std::int32_t first = index * kSplitSubTiles;
  job.num_sub_tiles = std::min(kSplitSubTiles, call.layout.sub_tile_of(rows.last_position) + 1 - first);
  job.sub_tiles = tiles;
  const std::int32_t first_block = call.batch.block_indptr[static_cast<std::size_t>(rows.seq)];
  for (std::int32_t t = 0; t < job.num_sub_tiles; ++t) {
    const auto at = static_cast<std::size_t>(first_block + (first + t) / call.layout.sub_tiles);
    tiles[t] = call.layout.sub_tile(call.layer.storage.data(), call.batch.block_ids[at], kv_head, first + t);
  }
  table_.attention[static_cast<std::size_t>(call.layout.type)][static_cast<std::size_t>(job.rows)](job);
}

// One split for all rows of a piece that see any of it; done(place of the row, state, index in the state) for each.
// `floats` has room for the queries and the sums of kAttentionRows rows.
template <class Done>
void PagedAttention::split(const Call& call, const Piece& piece, std::int64_t kv_head, std::int32_t index, float* floats,
                           Done done) const {
  AttentionState state{};
  state.sums = floats + std::int64_t{kAttentionRows} * call.layout.padded_dim;
  Rows rows{};
  const auto flush = [&] {
    if (rows.count == 0) return;
    compute(call, rows, kv_head, index, floats, state);
    for (int r = 0; r < rows.count; ++r) done(rows.row[r].place, state, r);
    rows.count = 0;
  };
  const std::int32_t first_position = call.layout.first_position(index * kSplitSubTiles);
  std::int32_t seq = -1;
  call.each_row(piece, [&](const AttentionPlan::Member& member, std::int32_t place, std::int32_t token, std::int32_t head) {
    if (member.seq != seq) {
      if (member.shared_splits <= index) flush();
      seq = member.seq;
    }
    const std::int32_t position = call.position(token);
    if (position < first_position) return;
    rows.last_position = rows.count == 0 ? position : std::max(rows.last_position, position);
    if (rows.count == 0) rows.seq = seq;
    rows.row[rows.count++] = {place, token, head};
    if (rows.count == kAttentionRows) flush();
  });
  flush();
}

void PagedAttention::whole_piece(const Call& call, const Piece& piece, std::int64_t kv_head, std::byte* scratch) const {
  const std::int64_t dim = call.layout.padded_dim;
  auto* floats = reinterpret_cast<float*>(scratch);
  float* sums = floats + 2 * kAttentionRows * dim;
  auto* rows = reinterpret_cast<AttentionRow*>(sums + piece.rows * dim);
  for (std::int32_t i = 0; i < piece.num_splits; ++i) {
    split(call, piece, kv_head, i, floats, [&](std::int32_t place, const AttentionState& state, int r) {
      const AttentionRow part = state.row(r, dim);
      if (i > 0) return table_.merge(rows[place], part, call.layout.padded_dim);
      rows[place] = {sums + place * dim, part.highest, part.total};
      std::copy_n(part.sums, dim, rows[place].sums);
    });
  }
  finish(call, piece, kv_head, [&](std::int32_t place, std::int32_t /*position*/) { return rows[place]; });
}

void PagedAttention::split_over_threads(const Call& call) {
  // Split-major, so that the pieces of a prefix read a split at about the same time.
  struct Part {
    const Piece* piece;
    std::int32_t index;
    std::int64_t first_row;  ///< of the results
  };
  const std::int64_t heads = call.layout.heads;
  const std::int64_t dim = call.layout.padded_dim;
  std::vector<Part> parts;
  std::vector<std::int64_t> first_part_row;  // of each piece
  std::int64_t results = 0;
  for (const Piece& piece : plan_.pieces()) {
    first_part_row.push_back(results);
    for (std::int32_t i = 0; i < piece.num_splits; ++i, results += piece.rows * heads) parts.push_back({&piece, i, results});
  }
  std::ranges::stable_sort(parts, {}, &Part::index);

  const std::int64_t thread_floats = 2 * kAttentionRows * dim;
  const std::int64_t floats = team_.size() * thread_floats + results * dim;
  std::byte* scratch = scratch_.at_least(floats * 4 + results * static_cast<std::int64_t>(sizeof(AttentionRow)));
  float* sums = reinterpret_cast<float*>(scratch) + team_.size() * thread_floats;
  auto* rows = reinterpret_cast<AttentionRow*>(scratch + floats * 4);
  team_.run(static_cast<std::int64_t>(parts.size()) * heads, [&](std::int64_t task, int thread) {
    const Part& part = parts[static_cast<std::size_t>(task / heads)];
    const std::int64_t first = part.first_row + task % heads * part.piece->rows;
    split(call, *part.piece, task % heads, part.index, reinterpret_cast<float*>(scratch) + thread * thread_floats,
          [&](std::int32_t place, const AttentionState& state, int r) {
            const AttentionRow from = state.row(r, dim);
            rows[first + place] = {sums + (first + place) * dim, from.highest, from.total};
            std::copy_n(from.sums, dim, rows[first + place].sums);
          });
  });
  for (std::size_t p = 0; p < plan_.pieces().size(); ++p) {
    const Piece& piece = plan_.pieces()[p];
    for (std::int64_t head = 0; head < heads; ++head) {
      finish(call, piece, head, [&](std::int32_t place, std::int32_t position) {
        const std::int64_t first = first_part_row[p] + head * piece.rows + place;
        AttentionRow& row = rows[first];
        const std::int32_t splits = call.layout.sub_tile_of(position) / kSplitSubTiles + 1;
        for (std::int32_t i = 1; i < splits; ++i) table_.merge(row, rows[first + i * piece.rows * heads], call.layout.padded_dim);
        return row;
      });
    }
  }
}

template <class RowAt>
void PagedAttention::finish(const Call& call, const Piece& piece, std::int64_t kv_head, RowAt row_at) const {
  call.each_row(piece, [&](const AttentionPlan::Member&, std::int32_t place, std::int32_t token, std::int32_t head) {
    const AttentionRow row = row_at(place, call.position(token));
    table_.finish_row(row.sums, row.total, call.out.row(token) + call.head_offset(kv_head, head), call.layout.head_dim);
  });
}

}  // namespace fixpoint::kernels::cpu
