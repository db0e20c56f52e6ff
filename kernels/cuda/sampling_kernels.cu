#include "kernels/cuda/sampling_kernels.h"

#include <cuda_platform/platform.h>

#include <algorithm>
#include <limits>

#include "kernels/cuda/launch.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kThreads = 1024;  // of a block
constexpr int kWarps = kThreads / kWarpSize;
static_assert(kWarps == kWarpSize, "a warp's lanes hold a value of each warp");
constexpr int kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;
constexpr int kBinsPerWarp = kBins / kWarps;
constexpr int kFirstShift = 32 - kDigitBits;
constexpr int kAllTies = std::numeric_limits<int>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows of one series of launches, and how many blocks share a row.
constexpr int kMaxRows = 64;
constexpr int kEnoughBlocks = 128;  // for any device, or nearly
constexpr int kMaxParts = kWarps;
constexpr int kPartIds = 4096;      // at least, of a part

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

/// What the filters have left of a row: the ids whose key is above `key` and, in order of ids, the first `ties` that
/// have it.
struct Cut {
  std::uint32_t key;
  int ties;
};

/// Of ids: how much weight those above the cut have, and how many are at it.
struct Part {
  Mass mass;
  Mass ties;
};

/// What is known of a row between two launches.
struct State {
  bool drawn;     ///< else its token stands
  float largest;  ///< logit
  Cut cut;
  // The filter that is at work: it looks for the key of its cut digit by digit.
  std::uint32_t found, known;  ///< digits, and where they are; between filters nothing is known
  Mass target;                 ///< weight or number that the cut is to leave
  Mass above;                  ///< of it, above the digits
};

/// A series of launches' memory; see choice_work_bytes.
struct Work {
  Mass* bins;       // [row][kBins], zeros between two passes
  Mass* largest;    // [row][part], as `place_of`
  Part* pieces;     // [row][part][warp]
  State* states;    // [row]
};
constexpr std::size_t kBinsBytes = std::size_t{kMaxRows} * kBins * sizeof(Mass);
constexpr std::size_t kLargestBytes = std::size_t{kEnoughBlocks} * sizeof(Mass);
constexpr std::size_t kPiecesBytes = std::size_t{kEnoughBlocks} * kWarps * sizeof(Part);
constexpr std::size_t kStatesBytes = std::size_t{kMaxRows} * sizeof(State);
static_assert(kMaxRows <= kEnoughBlocks, "a part of each row has its place");

struct Shared {
  SharedArray<Mass> bins;      // [kBins]
  SharedArray<Mass> of_warps;  // [kWarps]
  SharedArray<Mass> ties;      // [kWarps]
  SharedArray<Mass> found;     // [2]

  __device__ explicit Shared(SharedArena& arena)
      : bins(arena.take<Mass>(kBins)),
        of_warps(arena.take<Mass>(kWarps)),
        ties(arena.take<Mass>(kWarps)),
        found(arena.take<Mass>(2)) {}
  static constexpr std::size_t kBytes = (kBins + 2 * kWarps + 2) * sizeof(Mass);
};

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

// Blocks (row, part) of a grid share the rows; a part's ids are cut into a piece for each warp.

inline __device__ int pieces_of(int ids, int count) { return (ids + count - 1) / count; }
inline __device__ int smaller(int a, int b) { return a < b ? a : b; }

struct Range {
  int first, last;
};
inline __device__ Range part_of_row(int size, int part, int parts) {
  const int ids = pieces_of(size, parts);
  return {part * ids, smaller((part + 1) * ids, size)};
}

inline __device__ const float* logits_of(const Rows& logits, const RowChoice& choice) {
  return logits.data + choice.row * logits.stride;
}
inline __device__ Row row_of(const Rows& logits, const RowChoice& choice, const State& state) {
  return {logits_of(logits, choice), choice.vocab_size, state.largest, choice.inverse_temperature};
}

/// Larger logits, and of equal ones lower ids, have larger places; a logit that is no number or infinite has the
/// largest.
inline __device__ Mass place_of(float logit, int id) {
  return logit < kInfinity ? static_cast<Mass>(order_key(logit)) << 32 | ~static_cast<std::uint32_t>(id) : kNotFinite;
}

__global__ void __launch_bounds__(kThreads) largest_kernel(Rows logits, const RowChoice* choices, Work work) {
  SharedArena arena;
  const Shared shared(arena);
  const RowChoice choice = choices[blockIdx.x];
  const float* row = logits_of(logits, choice);
  const Range ids = part_of_row(choice.vocab_size, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y));
  Mass best = 0;
  for (int i = ids.first + thread(); i < ids.last; i += kThreads) best = Larger{}(best, place_of(row[i], i));
  best = over_block(best, shared.of_warps, Larger{});
  if (thread() == 0) work.largest[blockIdx.x * gridDim.y + blockIdx.y] = best;
  if (blockIdx.y > 0) return;
  for (int bin = thread(); bin < kBins; bin += kThreads) work.bins[static_cast<int>(blockIdx.x) * kBins + bin] = 0;
}

/// A warp a row: its token where it is greedy or not finite, else what the passes begin with.
__global__ void __launch_bounds__(kWarpSize)
start_kernel(Rows logits, const RowChoice* choices, int parts, Work work, std::int32_t* out) {
  const RowChoice choice = choices[blockIdx.x];
  const Mass* largest = work.largest + static_cast<int>(blockIdx.x) * parts;
  const Mass best = over_warp(lane() < parts ? largest[lane()] : Mass{0}, Larger{});
  if (lane() != 0) return;
  const bool finite = best != kNotFinite && best >> 32 != order_key(-kInfinity);
  const int chosen = finite ? static_cast<int>(~static_cast<std::uint32_t>(best)) : -1;
  State state{};
  state.drawn = finite && choice.inverse_temperature > 0.0F;
  if (state.drawn) {
    state.largest = logits_of(logits, choice)[chosen];
    state.cut = {order_key(state.largest - choice.depth), kAllTies};
  }
  work.states[blockIdx.x] = state;
  out[blockIdx.x] = chosen;
}

// top_k and top_p cut to the fewest of the largest logits that are left whose number, or whose weights, reach a target.
// Radix selection: the key of the last of them is found digit by digit, for each of which all blocks count and then one
// of each row narrows.

template <bool by_weight>
constexpr bool filters(const RowChoice& choice) {
  return by_weight ? choice.top_p < 1.0F : choice.top_k > 0 && choice.top_k < choice.vocab_size;
}

/// Whether the row takes part in the pass over the digit at `shift`: where all that is left is less than the target, the
/// first pass found no digit.
template <bool by_weight>
__device__ bool takes_part(const RowChoice& choice, const State& state, int shift) {
  return state.drawn && filters<by_weight>(choice) && (shift == kFirstShift || state.known != 0);
}

/// Adds what is left by the cut up into bins, by the digit at `shift` of the keys that have the digits that are known.
template <bool by_weight>
__global__ void __launch_bounds__(kThreads) count_kernel(Rows logits, const RowChoice* choices, int shift, Work work) {
  const RowChoice choice = choices[blockIdx.x];
  const State state = work.states[blockIdx.x];
  if (!takes_part<by_weight>(choice, state, shift)) return;
  SharedArena arena;
  const Shared shared(arena);
  const Row row = row_of(logits, choice, state);
  const Cut cut = state.cut;
  for (int bin = thread(); bin < kBins; bin += kThreads) shared.bins[bin] = 0;
  __syncthreads();
  const auto add = [&](std::uint32_t key, float logit, Mass times) {
    if (((key ^ state.found) & state.known) != 0) return;
    const Mass value = by_weight ? row.weight(logit) : Mass{1};
    atomic_add(shared.bins[static_cast<int>(key >> shift & (kBins - 1U))], value * times);
  };
  const Range ids = part_of_row(row.size, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y));
  for (int i = ids.first + thread(); i < ids.last; i += kThreads) {
    const float logit = row.logits[i];
    const std::uint32_t key = order_key(logit);
    if (key > cut.key || (key == cut.key && cut.ties == kAllTies)) add(key, logit, 1);
  }
  if (blockIdx.y == 0 && thread() == 0 && cut.ties != kAllTies) {
    add(cut.key, logit_of(cut.key), static_cast<Mass>(cut.ties));
  }
  __syncthreads();
  for (int bin = thread(); bin < kBins; bin += kThreads) {
    const Mass sum = shared.bins[bin];
    if (sum != 0) atomic_add(work.bins[static_cast<int>(blockIdx.x) * kBins + bin], sum);
  }
}

/// The first bin, from the last one down, with which `above` and the bins' sum reaches the target; `above` becomes the
/// sum before it. -1 where no bin does.
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

/// A block a row: finds the digit, and with the last one the cut.
template <bool by_weight>
__global__ void __launch_bounds__(kThreads) narrow_kernel(Rows logits, const RowChoice* choices, int shift, Work work) {
  const RowChoice choice = choices[blockIdx.x];
  State state = work.states[blockIdx.x];
  if (!takes_part<by_weight>(choice, state, shift)) return;
  SharedArena arena;
  const Shared shared(arena);
  Mass sum = 0;
  for (int bin = thread(); bin < kBins; bin += kThreads) {
    Mass& counted = work.bins[static_cast<int>(blockIdx.x) * kBins + bin];
    shared.bins[bin] = counted;
    sum += counted;
    counted = 0;
  }
  const Mass total = over_block(sum, shared.of_warps, Sum{});
  if (shift == kFirstShift) state.target = by_weight ? kept_mass(total, choice.top_p) : static_cast<Mass>(choice.top_k);
  const int digit = find_bin(state.target, state.above, shared);
  if (digit < 0) return;  // all of it is less
  state.found |= static_cast<std::uint32_t>(digit) << shift;
  state.known |= (kBins - 1U) << shift;
  if (shift == 0) {
    const Mass each = by_weight ? row_of(logits, choice, state).weight(logit_of(state.found)) : Mass{1};
    state.cut = {state.found, static_cast<int>((state.target - state.above + each - 1) / each)};
    state.found = state.known = 0;
    state.above = 0;
  }
  if (thread() == 0) work.states[blockIdx.x] = state;
}

/// Of the ids first, first + step, … below last.
__device__ Part sum_ids(const Row& row, Cut cut, int first, int last, int step) {
  Part part{};
  for (int i = first; i < last; i += step) {
    const float logit = row.logits[i];
    const std::uint32_t key = order_key(logit);
    if (key > cut.key) part.mass += row.weight(logit);
    if (key == cut.key) ++part.ties;
  }
  return part;
}

/// Of the ids first.. below last, by a warp.
__device__ Part sum_piece(const Row& row, Cut cut, int first, int last) {
  const Part part = sum_ids(row, cut, first + lane(), last, kWarpSize);
  return {over_warp(part.mass, Sum{}), over_warp(part.ties, Sum{})};
}

__global__ void __launch_bounds__(kThreads) weigh_kernel(Rows logits, const RowChoice* choices, Work work) {
  const State state = work.states[blockIdx.x];
  if (!state.drawn) return;
  const Row row = row_of(logits, choices[blockIdx.x], state);
  const Range ids = part_of_row(row.size, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y));
  const int piece = pieces_of(pieces_of(row.size, static_cast<int>(gridDim.y)), kWarps);
  const int first = ids.first + warp() * piece;
  const Part sum = sum_piece(row, state.cut, first, smaller(first + piece, ids.last));
  if (lane() == 0) work.pieces[static_cast<int>(blockIdx.x * gridDim.y + blockIdx.y) * kWarps + warp()] = sum;
}

__device__ Mass fewer(Mass ties, int kept) { return ties < static_cast<Mass>(kept) ? ties : static_cast<Mass>(kept); }

/// What is left of the draw and of the ties behind the pieces that were passed over; thread 0's counts.
struct Walk {
  Mass tie_weight;
  Mass left;
  int ties;

  /// Of a piece for each warp, whose sums the warps' first lanes bring, the one where the draw falls.
  __device__ int find_piece(const Part& sum, const Shared& shared) {
    if (lane() == 0) {
      shared.of_warps[warp()] = sum.mass;
      shared.ties[warp()] = sum.ties;
    }
    __syncthreads();
    if (thread() == 0) {
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
    return static_cast<int>(static_cast<Mass>(shared.found[0]));
  }
};

/// A block a row: the first id with which the sum of the kept weights exceeds the draw. The part that has it, the piece of
/// the part, and then pieces of the piece, until it is one id.
__global__ void __launch_bounds__(kThreads)
draw_kernel(Rows logits, const RowChoice* choices, int parts, Work work, std::int32_t* out) {
  const RowChoice choice = choices[blockIdx.x];
  const State state = work.states[blockIdx.x];
  if (!state.drawn) return;
  SharedArena arena;
  const Shared shared(arena);
  const Row row = row_of(logits, choice, state);
  const Part* pieces = work.pieces + static_cast<int>(blockIdx.x) * parts * kWarps;
  const Part own = warp() < parts ? pieces[warp() * kWarps + lane()] : Part{};
  const Part of_part{over_warp(own.mass, Sum{}), over_warp(own.ties, Sum{})};
  Walk walk{row.weight(logit_of(state.cut.key)), 0, state.cut.ties};
  const Mass mass = over_block(own.mass, shared.of_warps, Sum{});
  const Mass ties = over_block(own.ties, shared.of_warps, Sum{});
  walk.left = drawn_mass(mass + fewer(ties, walk.ties) * walk.tie_weight, choice.u);

  const int part = walk.find_piece(of_part, shared);
  Range ids = part_of_row(row.size, part, parts);
  int piece = pieces_of(pieces_of(row.size, parts), kWarps);
  int found = walk.find_piece(pieces[part * kWarps + warp()], shared);
  while (true) {
    ids.first += found * piece;
    ids.last = smaller(ids.first + piece, ids.last);
    if (ids.last - ids.first <= 1) break;
    piece = pieces_of(ids.last - ids.first, kWarps);
    const int first = ids.first + warp() * piece;
    found = walk.find_piece(sum_piece(row, state.cut, first, smaller(first + piece, ids.last)), shared);
  }
  if (thread() == 0) out[blockIdx.x] = ids.first;
}

template <bool by_weight>
void queue_filter(Rows logits, const RowChoice* choices, dim3 grid, const Work& work, cudaStream_t stream) {
  for (int shift = kFirstShift;; shift = std::max(0, shift - kDigitBits)) {
    launch({grid, kThreads, Shared::kBytes, stream, "count_logits"}, count_kernel<by_weight>, logits, choices, shift, work);
    launch({grid.x, kThreads, Shared::kBytes, stream, "narrow"}, narrow_kernel<by_weight>, logits, choices, shift, work);
    if (shift == 0) return;
  }
}

/// At most kMaxRows of them.
void queue_rows(Rows logits, std::span<const RowChoice> choices, const RowChoice* on_device, const Work& work,
                std::int32_t* out, cudaStream_t stream) {
  const auto any = [&](auto wanted) { return std::ranges::any_of(choices, wanted); };
  const auto n = static_cast<int>(choices.size());
  const int longest = std::ranges::max(choices, {}, &RowChoice::vocab_size).vocab_size;
  const int parts = std::clamp(std::min(kEnoughBlocks / n, (longest + kPartIds - 1) / kPartIds), 1, kMaxParts);
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(parts));
  launch({grid, kThreads, Shared::kBytes, stream, "largest_logit"}, largest_kernel, logits, on_device, work);
  launch({grid.x, kWarpSize, 0, stream, "start_choice"}, start_kernel, logits, on_device, parts, work, out);
  if (!any([](const RowChoice& c) { return c.inverse_temperature > 0.0F; })) return;
  if (any(filters<false>)) queue_filter<false>(logits, on_device, grid, work, stream);
  if (any(filters<true>)) queue_filter<true>(logits, on_device, grid, work, stream);
  launch({grid, kThreads, 0, stream, "weigh"}, weigh_kernel, logits, on_device, work);
  launch({grid.x, kThreads, Shared::kBytes, stream, "draw"}, draw_kernel, logits, on_device, parts, work, out);
}

}  // namespace

std::size_t choice_work_bytes() { return kBinsBytes + kLargestBytes + kPiecesBytes + kStatesBytes; }

void queue_choices(Rows logits, std::span<const RowChoice> choices, const RowChoice* on_device, std::byte* work,
                   std::int32_t* out, cudaStream_t stream) {
  const Work places{reinterpret_cast<Mass*>(work), reinterpret_cast<Mass*>(work + kBinsBytes),
                    reinterpret_cast<Part*>(work + kBinsBytes + kLargestBytes),
                    reinterpret_cast<State*>(work + kBinsBytes + kLargestBytes + kPiecesBytes)};
  for (std::size_t first = 0; first < choices.size(); first += kMaxRows) {
    const std::size_t count = std::min<std::size_t>(kMaxRows, choices.size() - first);
    queue_rows(logits, choices.subspan(first, count), on_device + first, places, out + first, stream);
  }
}

}  // namespace fixpoint::kernels::cuda
