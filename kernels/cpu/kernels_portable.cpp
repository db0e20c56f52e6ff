#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/block_products.h"
#include "kernels/cpu/plain_products.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/simd_portable.h"

namespace fixpoint::kernels::cpu {

KernelTable portable_kernels() {
  KernelTable table;
  table.name = "portable";
  table.products[static_cast<std::size_t>(DType::f32)] = narrow_plain_products<F32Weights<Portable>>(RowForm::f32);
  table.products[static_cast<std::size_t>(DType::f16)] = narrow_plain_products<F16Weights<Portable>>(RowForm::f32);
  table.products[static_cast<std::size_t>(DType::bf16)] = narrow_plain_products<Bf16Weights<Portable>>(RowForm::f32);
  use_block_products<Portable, RowSizes::few>(table);
  use_row_kernels<Portable>(table);
  use_attention_kernels<Portable, false>(table);
  return table;
}

}  // namespace fixpoint::kernels::cpu
