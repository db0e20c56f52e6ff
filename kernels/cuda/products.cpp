#include "kernels/cuda/products.h"

#include <algorithm>

#include "kernels/cuda/product_kernels.h"

namespace fixpoint::kernels::cuda {
namespace {

// Weights are unpacked in slices of at most so much.
constexpr std::int64_t kUnpackedBytes = std::int64_t{64} << 20U;

}  // namespace

Gemm& Products::gemm() {
  if (gemm_ == nullptr) gemm_ = make_gemm(stream_);
  return *gemm_;
}

void Products::multiply(const Rows& x, const DeviceWeight& w, const float* bias, const Rows& out) {
  if (x.rows == 0) return;
  const bool by_gemm = kind_ == CudaProducts::fastest && x.rows > kProductRows;
  if (by_gemm) {
    const std::int64_t cols = (x.cols + 7) / 8 * 8;
    x_bf16_.reserve(static_cast<std::size_t>(x.rows * cols) * sizeof(std::uint16_t));
    const auto needs_bf16 = [](const DeviceWeight::Part& part) { return part.type != DType::f32 && part.type != DType::f16; };
    if (std::ranges::any_of(w.parts(), needs_bf16)) queue_to_bf16(x, x_bf16_.as<std::uint16_t>(), cols, stream_.get());
  }
  for (const DeviceWeight::Part& part : w.parts()) {
    const float* part_bias = bias != nullptr ? bias + part.first_row : nullptr;
    const Rows part_out{out.data + part.first_row, out.stride, out.rows, part.view.rows};
    if (by_gemm) {
      multiply_part(x, part, part_bias, part_out);
    } else {
      queue_row_products(part.type, part.view, x, part_bias, part_out, stream_.get());
    }
  }
}

/// The operands that cuBLASLt takes: BF16 and F32 as they are, F16 as F32 with TF32 products (as many bits of mantissa, and
/// activations may be larger than F16 holds), the block types as BF16.
void Products::multiply_part(const Rows& x, const DeviceWeight::Part& part, const float* bias, const Rows& out) {
  const bool as_f32 = part.type == DType::f32 || part.type == DType::f16;
  const DType type = as_f32 ? DType::f32 : DType::bf16;
  const std::int64_t element = as_f32 ? 4 : 2;
  const std::int64_t cols = (x.cols + 7) / 8 * 8;
  GemmCall call{.type = type, .tf32 = part.type == DType::f16, .x = x.data, .x_stride = x.stride, .out_stride = out.stride, .n = x.rows, .cols = x.cols};
  if (!as_f32) {
    call.x = x_bf16_.data();
    call.x_stride = cols;
  }
  if (part.type == type) {
    call.w = part.view.data;
    call.w_stride = part.view.pitch / element;
    call.bias = bias;
    call.out = out.data;
    call.rows = part.view.rows;
    return gemm().multiply(call);
  }
  const auto slice = static_cast<std::int32_t>(std::clamp<std::int64_t>(kUnpackedBytes / (cols * element), 1, part.view.rows));
  unpacked_.reserve(static_cast<std::size_t>(slice * cols * element));
  for (std::int32_t first = 0; first < part.view.rows; first += slice) {
    const std::int32_t count = std::min(slice, part.view.rows - first);
    queue_dequantize(part.type, part.view, first, count, type, unpacked_.data(), cols, stream_.get());
    call.w = unpacked_.data();
    call.w_stride = cols;
    call.bias = bias != nullptr ? bias + first : nullptr;
    call.out = out.data + first;
    call.rows = count;
    gemm().multiply(call);
  }
}

}  // namespace fixpoint::kernels::cuda
