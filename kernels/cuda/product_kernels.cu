#include "kernels/cuda/product_kernels.h"

#include <cuda_platform/platform.h>

#include <cstdint>
#include <stdexcept>

#include "kernels/cuda/block_formats.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kWarps = 4;

inline __device__ int thread() { return static_cast<int>(threadIdx.x); }

/// Four floats of a row of x; elements past its end are zeros.
inline __device__ Floats4 four(const float* row, std::int32_t at, std::int32_t cols, bool aligned) {
  if (aligned && at + 4 <= cols) return load_floats4(row + at);
  Floats4 out;
  for (int i = 0; i < 4; ++i) out.v[i] = at + i < cols ? row[at + i] : 0.0F;
  return out;
}

/// A warp multiplies one row of w with up to `count` rows of x. Two sums a product, one for each half of the units.
template <DType type, int count>
__global__ void __launch_bounds__(kWarps * kWarpSize)
row_product_kernel(MatrixView w, Rows x, const float* bias, Rows out, std::int32_t groups, bool aligned) {
  const int lane = thread() % kWarpSize;
  const std::int32_t row = static_cast<std::int32_t>(blockIdx.x) / groups * kWarps + thread() / kWarpSize;
  const std::int32_t first = static_cast<std::int32_t>(blockIdx.x) % groups * count;
  if (row >= w.rows) return;
  const std::uint8_t* codes = w.data + row * w.pitch;
  float sums[count][2] = {};
  const std::int32_t units = (w.cols + 7) / 8;
#pragma unroll 2
  for (std::int32_t unit = lane; unit < units; unit += kWarpSize) {
    const Unit u = Format<type>::read(codes, w.cols, unit);
    const UnitPlace at = Format<type>::place(unit);
#pragma unroll
    for (int r = 0; r < count; ++r) {
      if (first + r < x.rows) {
        const float* values = x.data + (first + r) * x.stride;
        const Floats4 a = four(values, at.first, w.cols, aligned);
        const Floats4 b = four(values, at.second, w.cols, aligned);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[r][0] = fused(u.w[i], a.v[i], sums[r][0]);
          sums[r][1] = fused(u.w[4 + i], b.v[i], sums[r][1]);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const float sum = warp_sum(sums[r][0] + sums[r][1]);
    if (lane == 0 && first + r < x.rows) out.data[(first + r) * out.stride + row] = bias != nullptr ? sum + bias[row] : sum;
  }
}

template <class Store>
inline __device__ void write_unit(const Unit& unit, const UnitPlace& at, std::int32_t cols, Store store) {
  for (int i = 0; i < 4; ++i) {
    if (at.first + i < cols) store(at.first + i, unit.w[i]);
    if (at.second + i < cols) store(at.second + i, unit.w[4 + i]);
  }
}

struct StoreFloat {
  float* row;
  __device__ void operator()(std::int32_t i, float value) const { row[i] = value; }
};
struct StoreBfloat {
  std::uint16_t* row;
  __device__ void operator()(std::int32_t i, float value) const { row[i] = float_to_bfloat(value); }
};

template <DType type>
__global__ void embed_kernel(MatrixView w, std::int32_t first_row, const std::int32_t* tokens, Rows out) {
  const std::int32_t row = tokens[blockIdx.x] - first_row;
  if (row < 0 || row >= w.rows) return;
  for (std::int32_t unit = thread(); unit < (w.cols + 7) / 8; unit += kRowThreads) {
    write_unit(Format<type>::read(w.data + row * w.pitch, w.cols, unit), Format<type>::place(unit), w.cols,
               StoreFloat{out.data + blockIdx.x * out.stride});
  }
}

template <DType type, class Store, class Element>
__global__ void dequantize_kernel(MatrixView w, std::int32_t first, Element* out, std::int64_t out_cols) {
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  for (std::int32_t unit = thread(); unit < (w.cols + 7) / 8; unit += kRowThreads) {
    write_unit(Format<type>::read(w.data + (first + row) * w.pitch, w.cols, unit), Format<type>::place(unit), w.cols,
               Store{out + row * out_cols});
  }
}

__global__ void to_bf16_kernel(Rows x, std::uint16_t* out, std::int64_t out_cols) {
  const auto i = static_cast<std::int32_t>(blockIdx.y) * kRowThreads + thread();
  if (i < x.cols) out[blockIdx.x * out_cols + i] = float_to_bfloat(x.data[blockIdx.x * x.stride + i]);
}

template <DType type>
struct Tag {
  static constexpr DType value = type;
};

/// Calls `visit` with the type as a constant.
template <class Visit>
void for_type(DType type, Visit visit) {
  switch (type) {
    case DType::f32: return visit(Tag<DType::f32>());
    case DType::f16: return visit(Tag<DType::f16>());
    case DType::bf16: return visit(Tag<DType::bf16>());
    case DType::q8_0: return visit(Tag<DType::q8_0>());
    case DType::q4_0: return visit(Tag<DType::q4_0>());
    case DType::q4_1: return visit(Tag<DType::q4_1>());
    case DType::q5_0: return visit(Tag<DType::q5_0>());
    case DType::q5_1: return visit(Tag<DType::q5_1>());
    case DType::q4_k: return visit(Tag<DType::q4_k>());
    case DType::q5_k: return visit(Tag<DType::q5_k>());
    case DType::q6_k: return visit(Tag<DType::q6_k>());
  }
  throw std::invalid_argument("no such type of weights");
}

template <DType type, int count>
void queue_products(const MatrixView& w, const Rows& x, const float* bias, const Rows& out, cudaStream_t stream) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.stride % 4 == 0;
  const std::int32_t groups = (x.rows + count - 1) / count;
  const auto blocks = static_cast<unsigned>((w.rows + kWarps - 1) / kWarps * static_cast<std::int64_t>(groups));
  launch({blocks, kWarps * kWarpSize, 0, stream, "row_products"}, row_product_kernel<type, count>, w, x, bias, out, groups, aligned);
}

}  // namespace

void queue_row_products(DType type, const MatrixView& w, Rows x, const float* bias, Rows out, cudaStream_t stream) {
  if (x.rows == 0) return;
  for_type(type, [&](auto tag) {
    constexpr DType kType = decltype(tag)::value;
    if (x.rows == 1) return queue_products<kType, 1>(w, x, bias, out, stream);
    if (x.rows <= 4) return queue_products<kType, 4>(w, x, bias, out, stream);
    return queue_products<kType, kProductRows>(w, x, bias, out, stream);
  });
}

void queue_embed(DType type, const MatrixView& w, std::int32_t first_row, const std::int32_t* tokens, Rows out, cudaStream_t stream) {
  for_type(type, [&](auto tag) {
    launch({static_cast<unsigned>(out.rows), kRowThreads, 0, stream, "embed"}, embed_kernel<decltype(tag)::value>, w, first_row, tokens, out);
  });
}

void queue_dequantize(DType type, const MatrixView& w, std::int32_t first, std::int32_t count, DType out_type, void* out,
                      std::int64_t out_cols, cudaStream_t stream) {
  const Launch how{static_cast<unsigned>(count), kRowThreads, 0, stream, "dequantize"};
  if (out_type == DType::f32) {
    // Only F16 weights are multiplied as F32.
    return launch(how, dequantize_kernel<DType::f16, StoreFloat, float>, w, first, static_cast<float*>(out), out_cols);
  }
  for_type(type, [&](auto tag) {
    launch(how, dequantize_kernel<decltype(tag)::value, StoreBfloat, std::uint16_t>, w, first, static_cast<std::uint16_t*>(out), out_cols);
  });
}

void queue_to_bf16(Rows x, std::uint16_t* out, std::int64_t out_cols, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(x.rows), static_cast<unsigned>((x.cols + kRowThreads - 1) / kRowThreads));
  launch({grid, kRowThreads, 0, stream, "to_bf16"}, to_bf16_kernel, x, out, out_cols);
}

}  // namespace fixpoint::kernels::cuda
