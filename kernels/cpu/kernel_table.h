#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/kv_type.h"
#include "kernels/tensor.h"

/// The inner loops of the CPU backend, once per instruction set, behind plain function pointers. Vectors have sixteen
/// lanes everywhere (narrower machines use several registers), so that weights and KV have one layout.
namespace fixpoint::kernels::cpu {

constexpr int kLanes = 16;
constexpr int kSecondLevel = 2;  ///< of the caches, for __builtin_prefetch
constexpr std::size_t kNumDTypes = 11;
constexpr std::int64_t kColumnStep = 256;  ///< a whole number of blocks of every type

/// How the rows that a weight is multiplied with are stored. A tile of R rows is [cols / 16][R][16] words for `f32` and
/// [cols / 32][R][16] words of two values for `bf16_pairs` (zeros past the columns), [cols / 32][R] QuantBlocks for `q8`.
enum class RowForm : std::uint8_t { f32, bf16_pairs, q8 };
constexpr std::size_t kNumRowForms = 3;

/// 32 values of one row as 8-bit codes: value = scale * code.
struct QuantBlock {
  std::int8_t codes[32];
  float scale;
  float sum;                  ///< of the codes
  std::int32_t neg_sum;       ///< minus the sum of the codes
  std::int32_t neg_sum_low;   ///< minus the sum of the first sixteen
};
static_assert(sizeof(QuantBlock) == 48);

/// Rows to bring into a form: `valid_rows` of x, filled up with zeros to `rows`.
struct RowTile {
  const float* x;
  std::int64_t stride;
  std::int64_t cols;
  int valid_rows;
  int rows;
  std::byte* to;
};

/// Consecutive panels of one matrix times one tile of rows, for the columns first_col .. end_col: where first_col is not
/// 0 the sums go on from what `out` holds, so that a result has the same bits however its columns are cut. A panel
/// holds sixteen outputs.
struct PanelProduct {
  const std::byte* panels;
  std::int64_t panel_bytes;
  std::int64_t num_panels;
  std::int64_t cols;
  std::int64_t first_col;  ///< a multiple of kColumnStep
  std::int64_t end_col;    ///< the same, or cols
  const std::byte* x;      ///< the whole tile, from column 0
  int valid_rows;
  int last_lanes;  ///< outputs of the last panel that exist
  float* out;      ///< first output of the first row
  std::int64_t out_stride;
  const float* bias;  ///< of the first output, or null; added with the last column
};

/// The products of one weight type, for several numbers of rows: `sizes` ascends and ends with 0.
struct ProductKernels {
  RowForm form = RowForm::f32;
  std::array<int, 9> sizes{};
  std::array<void (*)(const PanelProduct&), 8> kernels{};
};

/// Keys of sixteen (or fewer) consecutive positions, [head_dim][16], and their values, [slots][padded head_dim]. The
/// scales of quantised ones are F16, for sixteen positions at a time: [16], and [groups][scale, offset][16] for INT4. INT4
/// codes lie two to a byte: two elements of a key, and the two halves of a value's group of 32.
struct KvSubTile {
  const std::byte* keys;
  const std::byte* values;
  const std::byte* key_scales;
  const std::byte* value_scales;
  std::int32_t first_position;
  std::int32_t slots;
};

constexpr int kAttentionRows = 8;    ///< query rows that share one read of keys and values
constexpr int kTileSubTiles = 4;     ///< sub-tiles in one step of the online softmax
constexpr int kSplitSubTiles = 16;   ///< sub-tiles that are reduced on their own and then combined

/// Running softmax of one row.
struct AttentionRow {
  float* sums;  ///< [padded head_dim]: weighted sum of values, relative to `highest`
  float highest;
  float total;
};

/// Running softmax of up to kAttentionRows rows.
struct AttentionState {
  float* sums;      ///< [rows][padded head_dim]
  float highest[kAttentionRows];
  float totals[kAttentionRows];

  [[nodiscard]] AttentionRow row(int r, std::int64_t padded_dim) const { return {sums + r * padded_dim, highest[r], totals[r]}; }
};

/// One split of the context for some query rows; overwrites `state`.
struct AttentionSplit {
  const KvSubTile* sub_tiles;
  int num_sub_tiles;  ///< 1..kSplitSubTiles
  const float* q;     ///< [head_dim][rows], scaled; a row of zeros more where head_dim is odd
  int rows;           ///< one of the kernel sizes
  std::int32_t head_dim;
  std::int32_t padded_dim;
  std::int32_t limits[kAttentionRows];  ///< positions that the row sees: 0..limit
  AttentionState* state;
};

using AttentionKernel = void (*)(const AttentionSplit&);

struct KernelTable {
  const char* name = "";
  bool bf16_pairs = false;  ///< BF16 panels hold two columns side by side

  std::array<ProductKernels, kNumDTypes> products;
  std::array<void (*)(const RowTile&), kNumRowForms> store_rows{};

  void (*add)(float* x, const float* delta, std::int64_t n) = nullptr;
  void (*rms_norm)(const float* x, const float* weight, float eps, float* out, std::int64_t n) = nullptr;
  void (*swiglu)(const float* gate, const float* up, float* out, std::int64_t n) = nullptr;
  void (*exp)(const float* x, float* out, std::int64_t n) = nullptr;
  /// cos_sin is [2][pairs], the magnitude included.
  void (*rope_half)(float* head, const float* cos_sin, std::int64_t pairs) = nullptr;
  void (*rope_adjacent)(float* head, const float* cos_sin, std::int64_t pairs) = nullptr;

  /// F32 to F32, F16, BF16; F16 saturates.
  std::array<void (*)(const float* from, std::byte* to, std::int64_t n), 3> to_kv{};
  /// Kernel for a KvType and 1..kAttentionRows rows; `attention_rows` says how many rows it takes.
  std::array<std::array<AttentionKernel, kAttentionRows + 1>, kKvTypes.size()> attention{};
  std::array<int, kAttentionRows + 1> attention_rows{};
  /// into = into (+) from
  void (*merge)(AttentionRow& into, const AttentionRow& from, std::int32_t padded_dim) = nullptr;
  /// out = sums / total
  void (*finish_row)(const float* sums, float total, float* out, std::int32_t head_dim) = nullptr;
};

[[nodiscard]] KernelTable portable_kernels();
[[nodiscard]] KernelTable avx2_kernels();
[[nodiscard]] KernelTable avx512_kernels();
/// Replace the kernels that the instructions make faster.
void use_avx512_vnni(KernelTable& table);
void use_avx512_bf16(KernelTable& table);

}  // namespace fixpoint::kernels::cpu
