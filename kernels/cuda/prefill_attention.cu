#include "kernels/cuda/prefill_attention.h"

#include <cuda_platform/platform.h>
#include <cuda_platform/tensor_cores.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/online_softmax.h"
#include "kernels/cuda/quantised_kv.h"
#include "kernels/cuda/reduce.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kWarpRows = 16;
constexpr int kThreads = kPrefillRows / kWarpRows * kWarpSize;
/// Positions whose keys and values lie in shared memory together.
constexpr int kPositions = 64;

inline __device__ int thread() { return static_cast<int>(threadIdx.x); }

/// What the tensor cores multiply for keys and values of a type.
template <KvType type>
inline constexpr DType kOperand = type == KvType::bf16 ? DType::bf16 : DType::f16;

template <KvType type>
inline __device__ std::uint32_t pack(float low, float high) {
  using Format = KvFormat<type == KvType::bf16 ? KvType::bf16 : KvType::f16>;
  return Format::store(low) | static_cast<std::uint32_t>(Format::store(high)) << 16U;
}

/// Keys and values of kPositions positions, two 16-bit elements a word. A word of keys is two neighbouring elements of one
/// position, one of values is an element of two neighbouring positions: as the tensor cores take them. The rows' lengths make the
/// lanes of a fragment meet different banks.
template <int dim>
struct SharedTile {
  static constexpr int kKeyWords = dim / 2 + 4;
  static constexpr int kValueWords = dim + 8;
  SharedArray<std::uint32_t> keys;    // [position][dim / 2]
  SharedArray<std::uint32_t> values;  // [position / 2][dim]

  __device__ explicit SharedTile(SharedArena& arena)
      : keys(arena.take<std::uint32_t>(kPositions * kKeyWords)), values(arena.take<std::uint32_t>(kPositions / 2 * kValueWords)) {}
  static constexpr std::size_t kBytes = sizeof(std::uint32_t) * (kPositions * kKeyWords + kPositions / 2 * kValueWords);
};

/// A warp computes 16 rows of the tile: (token, head of the group). A lane has parts of two of them, 8 apart; see multiply_tile.
template <KvType type, int dim>
struct PrefillAttention {
  const AttentionInput& in;
  const AttentionTile& tile;
  const SharedTile<dim>& shared;
  int group = in.heads / in.kv.heads;
  int kv_head = static_cast<int>(blockIdx.y);
  int lane = thread() % kWarpSize;
  int first_row = thread() / kWarpSize * kWarpRows + lane / 4;
  int pair = lane % 4;

  std::uint32_t queries[dim / 16][4];
  float values[dim / 8][4] = {};
  std::int32_t limit[2];  // last position that the row sees; below 0: there is no such row
  float maximum[2] = {minus_infinity(), minus_infinity()};
  float sum[2] = {};  // of this lane's positions only

  __device__ std::int32_t token(int half) const { return tile.first_token + (first_row + 8 * half) / group; }
  __device__ bool used(int half) const { return first_row + 8 * half < tile.num_tokens * group; }
  __device__ std::int64_t column(int half) const { return static_cast<std::int64_t>(kv_head * group + (first_row + 8 * half) % group) * in.kv.dim; }

  __device__ void load_queries() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      limit[half] = used(half) ? in.positions[token(half)] : -1;
      const float* q = in.q.data + (used(half) ? token(half) * in.q.stride + column(half) : 0);
#pragma unroll
      for (int word = 0; word < dim / 8; ++word) {  // elements 8 word + 2 pair, + 1
        const int d = 8 * word + 2 * pair;
        const float low = used(half) && d < in.kv.dim ? q[d] : 0.0F;
        const float high = used(half) && d + 1 < in.kv.dim ? q[d + 1] : 0.0F;
        queries[word / 2][word % 2 * 2 + half] = pack<type>(low, high);
      }
    }
  }

  /// Eight elements of the keys at a position, or of its values; zeros beyond the last position: a weight of zero times what
  /// a block held before could be no number.
  __device__ Words4 load(std::int32_t position, std::int32_t last, int element, bool of_values) const {
    if (position > last || element >= in.kv.padded_dim) return {};
    const std::int32_t block = in.block_ids[in.block_indptr[tile.sequence] + position / in.kv.block_size];
    const std::int64_t row = kv_row(in.kv, block, of_values, kv_head, position % in.kv.block_size);
    if constexpr (kQuantised<type>) {
      const Eight e = load_eight<type>(in.kv, row, element);
      return {{pack<type>(e.v[0], e.v[1]), pack<type>(e.v[2], e.v[3]), pack<type>(e.v[4], e.v[5]), pack<type>(e.v[6], e.v[7])}};
    } else {
      return load_words4(in.kv.data + row * in.kv.row_bytes + element * 2);
    }
  }

  __device__ void load_tile(std::int32_t first, std::int32_t last) const {
    constexpr int kPieces = dim / 8;
    for (int i = thread(); i < kPositions / 2 * kPieces; i += kThreads) {
      const int two = i / kPieces;  // positions 2 two and 2 two + 1
      const int element = i % kPieces * 8;
      const std::int32_t position = first + 2 * two;
      store_words4(shared.keys, 2 * two * SharedTile<dim>::kKeyWords + element / 2, load(position, last, element, false));
      store_words4(shared.keys, (2 * two + 1) * SharedTile<dim>::kKeyWords + element / 2, load(position + 1, last, element, false));
      const Words4 even = load(position, last, element, true);
      const Words4 odd = load(position + 1, last, element, true);
      const int at = two * SharedTile<dim>::kValueWords + element;
#pragma unroll
      for (int j = 0; j < 4; j += 2) store_words4(shared.values, at + 2 * j, interleave(even.w[j], odd.w[j], even.w[j + 1], odd.w[j + 1]));
    }
  }

  static __device__ Words4 interleave(std::uint32_t even_a, std::uint32_t odd_a, std::uint32_t even_b, std::uint32_t odd_b) {
    return {{(even_a & 0xffffU) | odd_a << 16U, even_a >> 16U | (odd_a & 0xffff0000U), (even_b & 0xffffU) | odd_b << 16U,
             even_b >> 16U | (odd_b & 0xffff0000U)}};
  }

  /// scores[n][i]: row half i / 2, position 8 n + 2 pair + i % 2 of the tile.
  __device__ void multiply_keys(float (&scores)[kPositions / 8][4]) const {
#pragma unroll
    for (int n = 0; n < kPositions / 8; ++n) {
      const int row = (8 * n + lane / 4) * SharedTile<dim>::kKeyWords + pair;
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = 0.0F;
#pragma unroll
      for (int k = 0; k < dim / 16; ++k) {
        const std::uint32_t keys[2] = {shared.keys[row + 8 * k], shared.keys[row + 8 * k + 4]};
        multiply_tile<kOperand<type>>(scores[n], queries[k], keys);
      }
    }
  }

  /// Turns the scores into weights and rescales what was summed before.
  __device__ void weigh(float (&scores)[kPositions / 8][4], std::int32_t first) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = minus_infinity();
#pragma unroll
      for (int n = 0; n < kPositions / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = first + 8 * n + 2 * pair + i % 2 <= limit[half] ? scores[n][i] * in.scale : minus_infinity();
          highest = fmaxf(highest, scores[n][i]);
        }
      }
      // The four lanes that share the row.
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 2));
      const float before = merge_scales(maximum[half], highest).before;
      const float base = limit[half] < 0 ? 0.0F : maximum[half];
      float weights = 0.0F;
#pragma unroll
      for (int n = 0; n < kPositions / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = fast_exp(scores[n][i] - base);
          weights += scores[n][i];
        }
      }
      sum[half] = fused(sum[half], before, weights);
#pragma unroll
      for (int n = 0; n < dim / 8; ++n) {
        values[n][2 * half] *= before;
        values[n][2 * half + 1] *= before;
      }
    }
  }

  __device__ void add_values(const float (&weights)[kPositions / 8][4]) {
#pragma unroll
    for (int k = 0; k < kPositions / 16; ++k) {
      const float(&low)[4] = weights[2 * k];
      const float(&high)[4] = weights[2 * k + 1];
      const std::uint32_t packed[4] = {pack<type>(low[0], low[1]), pack<type>(low[2], low[3]), pack<type>(high[0], high[1]),
                                       pack<type>(high[2], high[3])};
      const int row = (8 * k + pair) * SharedTile<dim>::kValueWords + lane / 4;
#pragma unroll
      for (int n = 0; n < dim / 8; ++n) {
        const std::uint32_t column[2] = {shared.values[row + 8 * n], shared.values[row + 4 * SharedTile<dim>::kValueWords + 8 * n]};
        multiply_tile<kOperand<type>>(values[n], packed, column);
      }
    }
  }

  __device__ void write() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = sum[half] + __shfl_xor_sync(kAllLanes, sum[half], 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      if (!used(half)) continue;
      float* out = in.out.data + token(half) * in.out.stride + column(half);
#pragma unroll
      for (int n = 0; n < dim / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int d = 8 * n + 2 * pair + i;
          if (d < in.kv.dim) out[d] = values[n][2 * half + i] / total;
        }
      }
    }
  }
};

template <KvType type, int dim>
__global__ void __launch_bounds__(kThreads) prefill_attention_kernel(AttentionInput in) {
  const AttentionTile tile = in.prefill[blockIdx.x];
  SharedArena arena;
  const SharedTile<dim> shared(arena);
  PrefillAttention<type, dim> attention{in, tile, shared};
  attention.load_queries();
  std::int32_t last = 0;
  for (std::int32_t i = 0; i < tile.num_tokens; ++i) {
    const std::int32_t position = in.positions[tile.first_token + i];
    if (position > last) last = position;
  }
  const std::int32_t warp_last = warp_max(attention.limit[0] > attention.limit[1] ? attention.limit[0] : attention.limit[1]);
  for (std::int32_t first = 0; first <= last; first += kPositions) {
    if (first > 0) __syncthreads();
    attention.load_tile(first, last);
    __syncthreads();
    if (first > warp_last) continue;
    float scores[kPositions / 8][4];
    attention.multiply_keys(scores);
    attention.weigh(scores, first);
    attention.add_values(scores);
  }
  attention.write();
}

template <KvType type, int dim>
void queue(const AttentionInput& in, cudaStream_t stream) {
  launch({{static_cast<unsigned>(in.num_prefill), static_cast<unsigned>(in.kv.heads)}, kThreads, SharedTile<dim>::kBytes, stream, "prefill_attention"},
         prefill_attention_kernel<type, dim>, in);
}

template <KvType type>
void queue_type(const AttentionInput& in, cudaStream_t stream) {
  in.kv.padded_dim <= 64 ? queue<type, 64>(in, stream) : queue<type, 128>(in, stream);
}

}  // namespace

bool can_prefill(const KvGeometry& kv) { return kv.type != KvType::f32 && kv.padded_dim <= 128; }

void queue_prefill_attention(const AttentionInput& input, cudaStream_t stream) {
  switch (input.kv.type) {
    case KvType::f32: return;  // see can_prefill
    case KvType::f16: return queue_type<KvType::f16>(input, stream);
    case KvType::bf16: return queue_type<KvType::bf16>(input, stream);
    case KvType::int8: return queue_type<KvType::int8>(input, stream);
    case KvType::fp8_e4m3: return queue_type<KvType::fp8_e4m3>(input, stream);
    case KvType::int4: return queue_type<KvType::int4>(input, stream);
  }
}

}  // namespace fixpoint::kernels::cuda
