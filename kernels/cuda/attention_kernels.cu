#include "kernels/cuda/attention_kernels.h"

#include <cuda_platform/platform.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/online_softmax.h"
#include "kernels/cuda/quantised_kv.h"
#include "kernels/cuda/reduce.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kTilePositions = kWarpSize;
constexpr int kWarpPositions = kSplitPositions / kWarps;

inline __device__ int thread() { return static_cast<int>(threadIdx.x); }

/// The query heads one block works on: those of one KV head, or up to kMaxTileRows of them.
struct HeadGroup {
  std::int32_t kv_head, first_head, heads;
};
inline __device__ HeadGroup head_group(const AttentionInput& in) {
  const std::int32_t group = in.heads / in.kv.heads;
  const std::int32_t parts = (group + kMaxTileRows - 1) / kMaxTileRows;
  const auto kv_head = static_cast<std::int32_t>(blockIdx.y) / parts;
  const std::int32_t first = static_cast<std::int32_t>(blockIdx.y) % parts * kMaxTileRows;
  const std::int32_t left = group - first;
  return {kv_head, kv_head * group + first, left < kMaxTileRows ? left : kMaxTileRows};
}

/// A block's shared memory. `scores` is a warp's own; the rest belongs to all.
template <int rows>
struct Shared {
  SharedArray<float> scores;       // [warp][position][row]
  SharedArray<float> warp_values;  // [warp][row][dim]
  SharedArray<float> warp_sums;    // [warp][row][maximum, sum]
  SharedArray<float> values;       // [row][dim], of all parts so far
  SharedArray<float> sums;         // [row][maximum, sum]

  __device__ Shared(SharedArena& arena, std::int32_t dim)
      : scores(arena.take<float>(kThreads * rows)),
        warp_values(arena.take<float>(kWarps * rows * dim)),
        warp_sums(arena.take<float>(kWarps * rows * 2)),
        values(arena.take<float>(rows * dim)),
        sums(arena.take<float>(rows * 2)) {}
  static std::size_t bytes(std::int32_t dim) {
    return sizeof(float) * static_cast<std::size_t>(kThreads * rows + (kWarps + 1) * rows * (dim + 2));
  }
};

/// What a lane keeps of its warp's part. The lanes of a row of keys hold eight elements each.
template <int rows>
struct Running {
  float q[rows][8];
  float values[rows][8];
  float maximum[rows], sum[rows];
  std::int32_t limit[rows];  // last position that the row sees
};

template <KvType type, int lanes, int rows>
struct Attention {
  static constexpr int kAtOnce = kWarpSize / lanes;  // positions a warp reads together

  const AttentionInput& in;
  const AttentionTile& tile;
  HeadGroup group;
  const Shared<rows>& shared;
  int lane = thread() % kWarpSize;
  int warp = thread() / kWarpSize;
  int element = thread() % lanes * 8;  // first of this lane's
  bool active = element < in.kv.padded_dim;

  __device__ std::int32_t row_token(int row) const { return tile.first_token + row / group.heads; }
  __device__ bool row_used(int row) const { return row < tile.num_tokens * group.heads; }
  __device__ std::int64_t column(int row) const { return static_cast<std::int64_t>(group.first_head + row % group.heads) * in.kv.dim; }

  __device__ std::int32_t load_queries(Running<rows>& state) const {
    std::int32_t last = -1;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      state.limit[r] = row_used(r) ? in.positions[row_token(r)] : -1;
      if (state.limit[r] > last) last = state.limit[r];
      const float* q = in.q.data + (row_used(r) ? row_token(r) * in.q.stride + column(r) : 0);
#pragma unroll
      for (int i = 0; i < 8; ++i) state.q[r][i] = row_used(r) && element + i < in.kv.dim ? q[element + i] : 0.0F;
    }
    return last;
  }

  /// The row of keys at a position; its row of values is heads * block_size rows further.
  __device__ std::int32_t key_row(std::int32_t position) const {
    const std::int32_t block = in.block_ids[in.block_indptr[tile.sequence] + position / in.kv.block_size];
    return static_cast<std::int32_t>(kv_row(in.kv, block, false, group.kv_head, position % in.kv.block_size));
  }

  __device__ Eight load(std::int32_t row, bool wanted) const {
    if (wanted && active) return load_eight<type>(in.kv, row, element);
    return {};
  }

  __device__ int score_at(int position, int row) const { return (warp * kTilePositions + position) * rows + row; }

  __device__ void scores(const Running<rows>& state, std::int32_t first, std::int32_t last, std::int32_t own_row) const {
#pragma unroll 4
    for (int i = 0; i < lanes; ++i) {
      const int position = i * kAtOnce + lane / lanes;
      const std::int32_t row = __shfl_sync(kAllLanes, own_row, position);
      const Eight k = load(row, first + position <= last);
      float products[rows];
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        products[r] = 0.0F;
#pragma unroll
        for (int e = 0; e < 8; ++e) products[r] = fused(state.q[r][e], k.v[e], products[r]);
      }
      sum_over_lanes<lanes, rows>(products, lane);
      constexpr int kSame = lanes / rows;  // lanes that end with the same row's sum
      if (lane % kSame == 0) shared.scores[score_at(position, lane % lanes / kSame)] = products[0];
    }
  }

  /// Turns the tile's scores into weights and rescales what was summed before.
  __device__ void weigh(Running<rows>& state, std::int32_t first) const {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const float score = first + lane <= state.limit[r] ? shared.scores[score_at(lane, r)] * in.scale : minus_infinity();
      const float highest = warp_max(score);
      float weight = 0.0F;
      if (highest > minus_infinity()) {
        const Scales scales = merge_scales(state.maximum[r], highest);
        weight = score > minus_infinity() ? fast_exp(score - state.maximum[r]) : 0.0F;
        state.sum[r] *= scales.before;
#pragma unroll
        for (int e = 0; e < 8; ++e) state.values[r][e] *= scales.before;
      }
      state.sum[r] += warp_sum(weight);
      shared.scores[score_at(lane, r)] = weight;
    }
  }

  __device__ void add_values(Running<rows>& state, std::int32_t first, std::int32_t last, std::int32_t own_row) const {
#pragma unroll 4
    for (int i = 0; i < lanes; ++i) {
      const int position = i * kAtOnce + lane / lanes;
      const std::int32_t row = __shfl_sync(kAllLanes, own_row, position) + in.kv.heads * in.kv.block_size;
      const Eight v = load(row, first + position <= last);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const float weight = shared.scores[score_at(position, r)];
#pragma unroll
        for (int e = 0; e < 8; ++e) state.values[r][e] = fused(weight, v.v[e], state.values[r][e]);
      }
    }
  }

  /// This warp's positions of a part: into warp_values and warp_sums.
  __device__ void warp_part(Running<rows>& state, std::int32_t split, std::int32_t last) const {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      state.maximum[r] = minus_infinity();
      state.sum[r] = 0.0F;
#pragma unroll
      for (int e = 0; e < 8; ++e) state.values[r][e] = 0.0F;
    }
    const std::int32_t begin = split * kSplitPositions + warp * kWarpPositions;
    for (std::int32_t first = begin; first < begin + kWarpPositions && first <= last; first += kTilePositions) {
      const std::int32_t own_row = first + lane <= last ? key_row(first + lane) : 0;
      scores(state, first, last, own_row);
      __syncwarp();
      weigh(state, first);
      __syncwarp();
      add_values(state, first, last, own_row);
      __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        float value = state.values[r][e];
        for (int mask = lanes; mask < kWarpSize; mask *= 2) value += __shfl_xor_sync(kAllLanes, value, mask);
        if (lane < lanes && active) shared.warp_values[(warp * rows + r) * in.kv.padded_dim + element + e] = value;
      }
      if (lane == 0) {
        shared.warp_sums[(warp * rows + r) * 2] = state.maximum[r];
        shared.warp_sums[(warp * rows + r) * 2 + 1] = state.sum[r];
      }
    }
  }

  /// The four warps' parts in order: into `value` for element `at` of [row][dim], with their maximum and sum.
  __device__ float merge_warps(int at, float& maximum, float& sum) const {
    const int r = at / in.kv.padded_dim;
    float value = 0.0F;
    maximum = minus_infinity();
    sum = 0.0F;
    for (int w = 0; w < kWarps; ++w) {
      const float other = shared.warp_sums[(w * rows + r) * 2];
      if (other == minus_infinity()) continue;
      const Scales scales = merge_scales(maximum, other);
      sum = fused(sum, scales.before, shared.warp_sums[(w * rows + r) * 2 + 1] * scales.after);
      value = fused(value, scales.before, shared.warp_values[w * rows * in.kv.padded_dim + at] * scales.after);
    }
    return value;
  }

  __device__ void run_whole(Running<rows>& state, std::int32_t last) const {
    const int elements = rows * in.kv.padded_dim;
    for (std::int32_t split = 0; split * kSplitPositions <= last; ++split) {
      warp_part(state, split, last);
      __syncthreads();
      for (int at = thread(); at < elements; at += kThreads) {
        const int r = at / in.kv.padded_dim;
        float maximum, sum;
        const float value = merge_warps(at, maximum, sum);
        // Every thread of a row keeps the row's maximum and sum in step; the first one of the row writes them below.
        float total_maximum = split == 0 ? minus_infinity() : static_cast<float>(shared.sums[2 * r]);
        float total = split == 0 ? 0.0F : static_cast<float>(shared.values[at]);
        if (maximum > minus_infinity()) {
          const Scales scales = merge_scales(total_maximum, maximum);
          total = fused(total, scales.before, value * scales.after);
        }
        shared.values[at] = total;
      }
      __syncthreads();
      if (thread() < rows) {
        const int r = thread();
        float maximum, sum;
        static_cast<void>(merge_warps(r * in.kv.padded_dim, maximum, sum));
        float total_maximum = split == 0 ? minus_infinity() : static_cast<float>(shared.sums[2 * r]);
        float total = split == 0 ? 0.0F : static_cast<float>(shared.sums[2 * r + 1]);
        if (maximum > minus_infinity()) {
          const Scales scales = merge_scales(total_maximum, maximum);
          total = fused(total, scales.before, sum * scales.after);
        }
        shared.sums[2 * r] = total_maximum;
        shared.sums[2 * r + 1] = total;
      }
      __syncthreads();
    }
    for (int at = thread(); at < elements; at += kThreads) {
      const int r = at / in.kv.padded_dim;
      const int d = at % in.kv.padded_dim;
      if (row_used(r) && d < in.kv.dim) in.out.data[row_token(r) * in.out.stride + column(r) + d] = shared.values[at] / shared.sums[2 * r + 1];
    }
  }

  /// One part: unfinished sums, [row][dim] and then [row][maximum, sum].
  __device__ void run_part(Running<rows>& state, std::int32_t last) const {
    warp_part(state, tile.split, last);
    __syncthreads();
    const int elements = rows * in.kv.padded_dim;
    float* partial = in.partials + (static_cast<std::int64_t>(tile.slot + tile.split) * gridDim.y + blockIdx.y) * kMaxTileRows * (in.kv.padded_dim + 2);
    for (int at = thread(); at < elements; at += kThreads) {
      float maximum, sum;
      partial[at] = merge_warps(at, maximum, sum);
      if (at % in.kv.padded_dim == 0) {
        const int r = at / in.kv.padded_dim;
        partial[kMaxTileRows * in.kv.padded_dim + 2 * r] = maximum;
        partial[kMaxTileRows * in.kv.padded_dim + 2 * r + 1] = sum;
      }
    }
  }
};

template <KvType type, int lanes, int rows>
__global__ void __launch_bounds__(kThreads) attention_kernel(AttentionInput in) {
  const AttentionTile tile = in.tiles[blockIdx.x];
  if (tile.sequence < 0) return;
  SharedArena arena;
  const Shared<rows> shared(arena, in.kv.padded_dim);
  const Attention<type, lanes, rows> attention{in, tile, head_group(in), shared};
  Running<rows> state;
  const std::int32_t last = attention.load_queries(state);
  if (tile.split < 0) {
    attention.run_whole(state, last);
  } else {
    attention.run_part(state, last);
  }
}

__global__ void __launch_bounds__(kThreads) combine_kernel(AttentionInput in) {
  const AttentionTile tile = in.combine[blockIdx.x];
  if (tile.sequence < 0) return;
  const HeadGroup group = head_group(in);
  const int dim = in.kv.padded_dim;
  const std::int64_t floats = kMaxTileRows * (dim + 2);
  for (int at = thread(); at < tile.num_tokens * group.heads * dim; at += kThreads) {
    const int r = at / dim;
    const int d = at % dim;
    float maximum = minus_infinity();
    float sum = 0.0F;
    float value = 0.0F;
    for (std::int32_t split = 0; split < tile.num_splits; ++split) {
      const float* partial = in.partials + (static_cast<std::int64_t>(tile.slot + split) * gridDim.y + blockIdx.y) * floats;
      const float* sums = partial + kMaxTileRows * dim + 2 * r;
      if (sums[0] == minus_infinity()) continue;
      const Scales scales = merge_scales(maximum, sums[0]);
      sum = fused(sum, scales.before, sums[1] * scales.after);
      value = fused(value, scales.before, partial[at] * scales.after);
    }
    if (d < in.kv.dim) {
      const std::int32_t token = tile.first_token + r / group.heads;
      in.out.data[token * in.out.stride + static_cast<std::int64_t>(group.first_head + r % group.heads) * in.kv.dim + d] = value / sum;
    }
  }
}

unsigned head_groups(const AttentionInput& in) {
  const std::int32_t group = in.heads / in.kv.heads;
  return static_cast<unsigned>(in.kv.heads * ((group + kMaxTileRows - 1) / kMaxTileRows));
}

template <KvType type, int lanes, int rows>
void queue(const AttentionInput& in, cudaStream_t stream) {
  launch({{static_cast<unsigned>(in.num_tiles), head_groups(in)}, kThreads, Shared<rows>::bytes(in.kv.padded_dim), stream, "attention"},
         attention_kernel<type, lanes, rows>, in);
}

/// The fewest rows that hold a tile: what a row computes does not depend on it.
template <KvType type, int lanes>
void queue_rows(const AttentionInput& in, cudaStream_t stream, std::int32_t rows) {
  if (rows == 1) return queue<type, lanes, 1>(in, stream);
  if constexpr (!is_quantised(type)) {  // fewer variants to compile
    if (rows <= 4) return queue<type, lanes, 4>(in, stream);
  }
  queue<type, lanes, 8>(in, stream);
}

template <KvType type>
void queue_type(const AttentionInput& in, cudaStream_t stream, std::int32_t rows) {
  if (in.kv.padded_dim <= 64) return queue_rows<type, 8>(in, stream, rows);
  if (in.kv.padded_dim <= 128) return queue_rows<type, 16>(in, stream, rows);
  queue<type, 32, 8>(in, stream);  // rare: fewer variants to compile
}

// For tests and debugging; nobody serves with it.
void queue_f32(const AttentionInput& in, cudaStream_t stream) {
  if (in.kv.padded_dim <= 64) return queue<KvType::f32, 8, 8>(in, stream);
  if (in.kv.padded_dim <= 128) return queue<KvType::f32, 16, 8>(in, stream);
  queue<KvType::f32, 32, 8>(in, stream);
}

}  // namespace

std::size_t partial_floats(std::int32_t slots, std::int32_t heads, const KvGeometry& kv) {
  const std::int32_t parts = (heads / kv.heads + kMaxTileRows - 1) / kMaxTileRows;
  return static_cast<std::size_t>(slots) * static_cast<std::size_t>(kv.heads * parts) * static_cast<std::size_t>(kMaxTileRows * (kv.padded_dim + 2));
}

void queue_attention(const AttentionInput& input, std::int32_t tile_rows, cudaStream_t stream) {
  switch (input.kv.type) {
    case KvType::f32: queue_f32(input, stream); break;
    case KvType::f16: queue_type<KvType::f16>(input, stream, tile_rows); break;
    case KvType::bf16: queue_type<KvType::bf16>(input, stream, tile_rows); break;
    case KvType::int8: queue_type<KvType::int8>(input, stream, tile_rows); break;
    case KvType::fp8_e4m3: queue_type<KvType::fp8_e4m3>(input, stream, tile_rows); break;
    case KvType::int4: queue_type<KvType::int4>(input, stream, tile_rows); break;
  }
  launch({{static_cast<unsigned>(input.num_combine), head_groups(input)}, kThreads, 0, stream, "attention_combine"}, combine_kernel, input);
}

}  // namespace fixpoint::kernels::cuda
