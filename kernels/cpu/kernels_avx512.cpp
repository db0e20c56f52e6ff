#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/block_products.h"
#include "kernels/cpu/plain_products.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/simd_avx512.h"

namespace fixpoint::kernels::cpu {

KernelTable avx512_kernels() {
  KernelTable table;
  table.name = "avx512";
  table.products[static_cast<std::size_t>(DType::f32)] = wide_plain_products<F32Weights<Avx512>>(RowForm::f32);
  table.products[static_cast<std::size_t>(DType::f16)] = wide_plain_products<F16Weights<Avx512>>(RowForm::f32);
  table.products[static_cast<std::size_t>(DType::bf16)] = wide_plain_products<Bf16Weights<Avx512>>(RowForm::f32);
  use_block_products<Avx512, RowSizes::some>(table);
  use_row_kernels<Avx512>(table);
  use_attention_kernels<Avx512, true>(table);
  return table;
}

}  // namespace fixpoint::kernels::cpu
