#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/block_products.h"
#include "kernels/cpu/plain_products.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/simd_avx2.h"

namespace fixpoint::kernels::cpu {

KernelTable avx2_kernels() {
  KernelTable table;
  table.name = "avx2";
  table.products[static_cast<std::size_t>(DType::f32)] = narrow_plain_products<F32Weights<Avx2>>(RowForm::f32);
  table.products[static_cast<std::size_t>(DType::f16)] = narrow_plain_products<F16Weights<Avx2>>(RowForm::f32);
  table.products[static_cast<std::size_t>(DType::bf16)] = narrow_plain_products<Bf16Weights<Avx2>>(RowForm::f32);
  use_block_products<Avx2, RowSizes::few>(table);
  use_row_kernels<Avx2>(table);
  use_attention_kernels<Avx2, false>(table);
  return table;
}

}  // namespace fixpoint::kernels::cpu
