#include "kernels/cuda/sampling_kernels.h"

#include <cuda_platform/platform.h>

#include <limits>

#include "kernels/cuda/launch.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kThreads = 1024;  // of the block that chooses for a row
constexpr int kWarps = kThreads / kWarpSize;
static_assert(kWarps == kWarpSize, "a warp's lanes hold a value of each warp");
constexpr int kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;
constexpr int kBinsPerWarp = kBins / kWarps;
constexpr int kAllTies = std::numeric_limits<int>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Mass = unsigned long long;  // 64 bits under the name that atomicAdd knows
constexpr Mass kNotFinite = ~Mass{0};

inline __device__ int thread() { return static_cast<int>(threadIdx.x); }
inline __device__ int lane() { return thread() % kWarpSize; }
inline __device__ int warp() { return thread() / kWarpSize; }

/// Unsigned numbers in the order of the logits; the two zeros are one.
inline __device__ std::uint32_t order_key(float logit) {
  const std::uint32_t bits = float_bits(logit + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
inline __device__ float logit_of(std::uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000U) != 0 ? key ^ 0x80000000U : ~key);
}

struct Row {
  const float* logits;
  int size;
  float largest;
  float inverse_temperature;

  __device__ Mass weight(float logit) const { return token_weight(logit, largest, inverse_temperature); }
};

/// What the filters have left of a row: the ids whose key is above `key` and, in order of ids, the first `ties` that have it.
struct Cut {
  std::uint32_t key;
  int ties;
};

struct Shared {
  SharedArray<Mass> bins;      // [kBins]
  SharedArray<Mass> of_warps;  // [kWarps]
  SharedArray<Mass> ties;      // [kWarps]
  SharedArray<Mass> found;     // [2]
};
constexpr std::size_t kSharedBytes = (kBins + 2 * kWarps + 2) * sizeof(Mass);

struct Sum {
  __device__ Mass operator()(Mass a, Mass b) const { return a + b; }
};
struct Larger {
  __device__ Mass operator()(Mass a, Mass b) const { return a > b ? a : b; }
};

template <class Combine>
__device__ Mass over_warp(Mass value, Combine combine) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value = combine(value, __shfl_xor_sync(kAllLanes, value, mask));
  return value;
}

template <class Combine>
__device__ Mass over_block(Mass value, SharedArray<Mass> of_warps, Combine combine) {
  value = over_warp(value, combine);
  if (lane() == 0) of_warps[warp()] = value;
  __syncthreads();
  value = of_warps[lane()];
  __syncthreads();
  return over_warp(value, combine);
}

/// The first of the largest logits; below 0 where the row is not finite.
__device__ int find_largest(const float* logits, int size, const Shared& shared) {
  Mass best = 0;
  for (int i = thread(); i < size; i += kThreads) {
    const float logit = logits[i];
    const Mass place = static_cast<Mass>(order_key(logit)) << 32 | ~static_cast<std::uint32_t>(i);
    best = Larger{}(best, logit < kInfinity ? place : kNotFinite);
  }
  best = over_block(best, shared.of_warps, Larger{});
  if (best == kNotFinite || best >> 32 == order_key(-kInfinity)) return -1;
  return static_cast<int>(~static_cast<std::uint32_t>(best));
}

/// Of the ids first, first + step, … below last.
struct Part {
  Mass mass = 0;  ///< above the cut
  Mass ties = 0;  ///< how many are at it
};
__device__ Part part_of(const Row& row, Cut cut, int first, int last, int step) {
  Part part;
  for (int i = first; i < last; i += step) {
    const float logit = row.logits[i];
    const std::uint32_t key = order_key(logit);
    if (key > cut.key) part.mass += row.weight(logit);
    if (key == cut.key) ++part.ties;
  }
  return part;
}

__device__ Mass fewer(Mass ties, int kept) { return ties < static_cast<Mass>(kept) ? ties : static_cast<Mass>(kept); }

__device__ Mass total_of(const Row& row, Cut cut, const Shared& shared) {
  const Part part = part_of(row, cut, thread(), row.size, kThreads);
  const Mass mass = over_block(part.mass, shared.of_warps, Sum{});
  const Mass ties = over_block(part.ties, shared.of_warps, Sum{});
  return mass + fewer(ties, cut.ties) * row.weight(logit_of(cut.key));
}

/// Adds what is left by the cut up into bins, by the digit at `shift` of the keys that agree with `found` where `known` says so.
template <bool by_weight>
__device__ void fill_bins(const Row& row, Cut cut, std::uint32_t found, std::uint32_t known, int shift, SharedArray<Mass> bins) {
  for (int bin = thread(); bin < kBins; bin += kThreads) bins[bin] = 0;
  __syncthreads();
  const auto add = [&](std::uint32_t key, float logit, Mass times) {
    if (((key ^ found) & known) != 0) return;
    const Mass value = by_weight ? row.weight(logit) : Mass{1};
    atomic_add(bins[static_cast<int>(key >> shift & (kBins - 1U))], value * times);
  };
  for (int i = thread(); i < row.size; i += kThreads) {
    const float logit = row.logits[i];
    const std::uint32_t key = order_key(logit);
    if (key > cut.key || (key == cut.key && cut.ties == kAllTies)) add(key, logit, 1);
  }
  if (thread() == 0 && cut.ties != kAllTies) add(cut.key, logit_of(cut.key), static_cast<Mass>(cut.ties));
  __syncthreads();
}

/// The first bin, from the last one down, with which `above` and the bins' sum reaches the target; `above` becomes the sum before
/// it. -1 where no bin does.
__device__ int find_bin(Mass target, Mass& above, const Shared& shared) {
  Mass sum = 0;
  for (int i = lane(); i < kBinsPerWarp; i += kWarpSize) sum += shared.bins[warp() * kBinsPerWarp + i];
  sum = over_warp(sum, Sum{});
  if (lane() == 0) shared.of_warps[warp()] = sum;
  __syncthreads();
  if (thread() == 0) {
    Mass before = above;
    int bin = kBins - 1;
    while (bin >= 0 && before + shared.of_warps[bin / kBinsPerWarp] < target) {
      before += shared.of_warps[bin / kBinsPerWarp];
      bin -= kBinsPerWarp;
    }
    while (bin >= 0 && before + shared.bins[bin] < target) before += shared.bins[bin--];
    shared.found[0] = static_cast<Mass>(bin + 1);
    shared.found[1] = before;
  }
  __syncthreads();
  above = shared.found[1];
  return static_cast<int>(static_cast<Mass>(shared.found[0])) - 1;
}

/// Cuts to the fewest of the largest logits that are left whose weights, or whose number, reach the target. Radix selection:
/// the key of the last of them is found digit by digit, each with a pass over the row.
template <bool by_weight>
__device__ Cut cut_to(const Row& row, Cut cut, Mass target, const Shared& shared) {
  std::uint32_t found = 0;
  std::uint32_t known = 0;
  Mass above = 0;
  for (int shift = 32 - kDigitBits;; shift = shift > kDigitBits ? shift - kDigitBits : 0) {
    fill_bins<by_weight>(row, cut, found, known, shift, shared.bins);
    const int digit = find_bin(target, above, shared);
    if (digit < 0) return cut;  // all of it is less
    const std::uint32_t mask = (kBins - 1U) << shift;
    found = (found & ~mask) | static_cast<std::uint32_t>(digit) << shift;
    known |= mask;
    if (shift == 0) break;
  }
  const Mass each = by_weight ? row.weight(logit_of(found)) : Mass{1};
  return {found, static_cast<int>((target - above + each - 1) / each)};
}

/// The first id with which the sum of the kept weights exceeds the draw. Warps add up a piece each; the piece that has it is cut
/// into pieces again, until it is one id.
__device__ int draw(const Row& row, Cut cut, double u, const Shared& shared) {
  const Mass tie_weight = row.weight(logit_of(cut.key));
  Mass left = 0;  // thread 0's: of the draw, before the piece
  int ties = cut.ties;
  int begin = 0;
  for (int end = row.size; end - begin > 1;) {
    const int piece = (end - begin + kWarps - 1) / kWarps;
    const int first = begin + warp() * piece;
    const Part part = part_of(row, cut, first + lane(), first + piece < end ? first + piece : end, kWarpSize);
    const Mass mass = over_warp(part.mass, Sum{});
    const Mass at_cut = over_warp(part.ties, Sum{});
    if (lane() == 0) {
      shared.of_warps[warp()] = mass;
      shared.ties[warp()] = at_cut;
    }
    __syncthreads();
    if (thread() == 0) {
      if (begin == 0 && end == row.size) {
        Mass total = 0;
        Mass all_ties = 0;
        for (int i = 0; i < kWarps; ++i) {
          total += shared.of_warps[i];
          all_ties += shared.ties[i];
        }
        left = drawn_mass(total + fewer(all_ties, ties) * tie_weight, u);
      }
      int i = 0;
      for (;; ++i) {
        const Mass kept_ties = fewer(shared.ties[i], ties);
        const Mass kept = shared.of_warps[i] + kept_ties * tie_weight;
        if (left < kept) break;
        left -= kept;
        ties -= static_cast<int>(kept_ties);
      }
      shared.found[0] = static_cast<Mass>(i);
    }
    __syncthreads();
    begin += static_cast<int>(static_cast<Mass>(shared.found[0])) * piece;
    end = begin + piece < end ? begin + piece : end;
  }
  return begin;
}

__global__ void __launch_bounds__(kThreads) choose_kernel(Rows logits, const RowChoice* choices, std::int32_t* out) {
  SharedArena arena;
  const auto bins = arena.take<Mass>(kBins);
  const auto of_warps = arena.take<Mass>(kWarps);
  const auto ties = arena.take<Mass>(kWarps);
  const Shared shared{bins, of_warps, ties, arena.take<Mass>(2)};
  const RowChoice choice = choices[blockIdx.x];
  Row row{logits.data + choice.row * logits.stride, choice.vocab_size, 0.0F, choice.inverse_temperature};
  int chosen = find_largest(row.logits, row.size, shared);
  if (chosen >= 0 && choice.inverse_temperature > 0.0F) {
    row.largest = row.logits[chosen];
    Cut cut{order_key(row.largest - choice.depth), kAllTies};
    if (choice.top_k > 0 && choice.top_k < row.size) cut = cut_to<false>(row, cut, static_cast<Mass>(choice.top_k), shared);
    if (choice.top_p < 1.0F) cut = cut_to<true>(row, cut, kept_mass(total_of(row, cut, shared), choice.top_p), shared);
    chosen = draw(row, cut, choice.u, shared);
  }
  if (thread() == 0) out[blockIdx.x] = chosen;
}

}  // namespace

void queue_choices(Rows logits, const RowChoice* choices, std::int32_t n, std::int32_t* out, cudaStream_t stream) {
  launch({static_cast<unsigned>(n), kThreads, kSharedBytes, stream, "choose"}, choose_kernel, logits, choices, out);
}

}  // namespace fixpoint::kernels::cuda
