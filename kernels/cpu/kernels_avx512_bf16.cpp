#include "kernels/cpu/plain_products.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/simd_avx512.h"

namespace fixpoint::kernels::cpu {
namespace {

// Two columns a word. g++ 12 surrounds the intrinsic with register moves, hence the assembly.
struct Bf16Pairs {
  using Simd = Avx512;
  using Word = std::uint32_t;
  static constexpr int kWordBytes = 64;
  static constexpr int kColumns = 2;
  static __m512i load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static __m512i broadcast(const std::uint32_t* x) { return _mm512_set1_epi32(static_cast<int>(*x)); }
  static void add_product(__m512& acc, __m512i w, __m512i x) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(w), "v"(x));
  }
};

template <class S>
void store_bf16_rows(const RowTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    auto* to = reinterpret_cast<std::uint16_t*>(t.to) + r * 2 * kLanes;
    for (std::int64_t i = 0; i < t.cols; i += 2 * kLanes, to += t.rows * 2 * kLanes) {
      const auto left = static_cast<int>(t.cols - i < 2 * kLanes ? t.cols - i : 2 * kLanes);
      const int lanes = r < t.valid_rows ? left : 0;
      const float* x = t.x + (lanes > 0 ? r * t.stride + i : 0);
      const __m512 low = S::load_some(x, lanes);
      const __m512 high = lanes > kLanes ? S::load_some(x + kLanes, lanes - kLanes) : S::zero();
      __m512i both;
      __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(low), "v"(high));
      _mm512_storeu_si512(to, both);
    }
  }
}

}  // namespace

void use_avx512_bf16(KernelTable& table) {
  table.bf16_pairs = true;
  table.products[static_cast<std::size_t>(DType::bf16)] = wide_plain_products<Bf16Pairs>(RowForm::bf16_pairs);
  table.store_rows[static_cast<std::size_t>(RowForm::bf16_pairs)] = store_bf16_rows<Avx512>;
}

}  // namespace fixpoint::kernels::cpu
