#include "kernels/cuda/row_kernels.h"

#include <cuda_platform/platform.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/quantised_kv.h"
#include "kernels/cuda/reduce.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kNormWarps = 4;
constexpr int kStoreWarps = 4;

inline __device__ int thread() { return static_cast<int>(threadIdx.x); }

inline __device__ float norm_scale(float square_sum, std::int32_t n, float eps) {
  return 1.0F / sqrtf(square_sum / static_cast<float>(n) + eps);
}

__global__ void rms_norm_kernel(Rows x, const float* weight, float eps, Rows out) {
  SharedArena arena;
  const auto partial = arena.take<float>(kRowThreads / kWarpSize);
  const float* from = x.data + blockIdx.x * x.stride;
  float* to = out.data + blockIdx.x * out.stride;
  float sum = 0.0F;
  for (int i = thread(); i < x.cols; i += kRowThreads) sum = fused(from[i], from[i], sum);
  const float scale = norm_scale(block_sum(sum, partial), x.cols, eps);
  for (int i = thread(); i < x.cols; i += kRowThreads) to[i] = from[i] * scale * weight[i];
}

// Each thread reads again only what it wrote itself.
__global__ void add_rms_norm_kernel(Rows residual, Rows delta, const float* weight, float eps, Rows out) {
  SharedArena arena;
  const auto partial = arena.take<float>(kRowThreads / kWarpSize);
  float* x = residual.data + blockIdx.x * residual.stride;
  const float* add = delta.data + blockIdx.x * delta.stride;
  float* to = out.data + blockIdx.x * out.stride;
  float sum = 0.0F;
  for (int i = thread(); i < residual.cols; i += kRowThreads) {
    const float value = x[i] + add[i];
    x[i] = value;
    sum = fused(value, value, sum);
  }
  const float scale = norm_scale(block_sum(sum, partial), residual.cols, eps);
  for (int i = thread(); i < residual.cols; i += kRowThreads) to[i] = x[i] * scale * weight[i];
}

__global__ void head_rms_norm_kernel(Rows x, std::int32_t heads, const float* weight, float eps) {
  const std::int32_t dim = x.cols / heads;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kNormWarps + thread() / kWarpSize;
  if (index >= static_cast<std::int64_t>(x.rows) * heads) return;
  float* head = x.data + index / heads * x.stride + index % heads * dim;
  const int lane = thread() % kWarpSize;
  float sum = 0.0F;
  for (int i = lane; i < dim; i += kWarpSize) sum = fused(head[i], head[i], sum);
  const float scale = norm_scale(warp_sum(sum), dim, eps);
  for (int i = lane; i < dim; i += kWarpSize) head[i] = head[i] * scale * weight[i];
}

__global__ void add_kernel(Rows x, Rows delta) {
  const auto i = static_cast<std::int32_t>(blockIdx.y) * kRowThreads + thread();
  if (i < x.cols) x.data[blockIdx.x * x.stride + i] += delta.data[blockIdx.x * delta.stride + i];
}

__global__ void swiglu_kernel(Rows gate_up, Rows out) {
  const auto i = static_cast<std::int32_t>(blockIdx.y) * kRowThreads + thread();
  if (i >= out.cols) return;
  const float* gate = gate_up.data + blockIdx.x * gate_up.stride;
  out.data[blockIdx.x * out.stride + i] = gate[i] / (1.0F + fast_exp(-gate[i])) * gate[out.cols + i];
}

__global__ void gather_kernel(Rows x, const std::int32_t* rows, Rows out) {
  const auto i = static_cast<std::int32_t>(blockIdx.y) * kRowThreads + thread();
  const std::int32_t row = rows[blockIdx.x];
  if (i < out.cols && row >= 0) out.data[blockIdx.x * out.stride + i] = x.data[row * x.stride + i];
}

__global__ void rope_kernel(Rows x, std::int32_t heads, const std::int32_t* positions, RopeView rope) {
  SharedArena arena;
  const auto cosines = arena.take<float>(rope.pairs);
  const auto sines = arena.take<float>(rope.pairs);
  const double position = positions[blockIdx.x];
  for (int i = thread(); i < rope.pairs; i += kRowThreads) {
    const double angle = position * static_cast<double>(rope.inv_freq[i]);
    cosines[i] = static_cast<float>(cos(angle) * static_cast<double>(rope.magnitude));
    sines[i] = static_cast<float>(sin(angle) * static_cast<double>(rope.magnitude));
  }
  __syncthreads();
  const std::int32_t dim = x.cols / heads;
  for (int i = thread(); i < heads * rope.pairs; i += kRowThreads) {
    const int pair = i % rope.pairs;
    float* head = x.data + blockIdx.x * x.stride + i / rope.pairs * dim;
    float* a = head + (rope.adjacent ? 2 * pair : pair);
    float* b = rope.adjacent ? a + 1 : a + rope.pairs;
    const float c = cosines[pair];
    const float s = sines[pair];
    const float rotated_a = fused(*a, c, -(*b * s));
    const float rotated_b = fused(*a, s, *b * c);
    *a = rotated_a;
    *b = rotated_b;
  }
}

template <KvType type>
__global__ void store_kv_kernel(Rows k, Rows v, const std::int32_t* slots, KvGeometry kv) {
  using Element = typename KvFormat<type>::Element;
  const std::int32_t slot = slots[blockIdx.x];
  if (slot < 0) return;
  auto* elements = reinterpret_cast<Element*>(kv.data);
  const std::int32_t block = slot / kv.block_size;
  const std::int32_t place = slot % kv.block_size;
  for (int i = thread(); i < kv.heads * kv.padded_dim; i += kRowThreads) {
    const int head = i / kv.padded_dim;
    const int d = i % kv.padded_dim;
    const std::int64_t column = head * kv.dim + d;
    elements[kv_row(kv, block, false, head, place) * kv.padded_dim + d] =
        KvFormat<type>::store(d < kv.dim ? k.data[blockIdx.x * k.stride + column] : 0.0F);
    elements[kv_row(kv, block, true, head, place) * kv.padded_dim + d] =
        KvFormat<type>::store(d < kv.dim ? v.data[blockIdx.x * v.stride + column] : 0.0F);
  }
}

/// A warp quantises one head's keys, or its values, of one token.
template <KvType type>
__global__ void store_quantised_kv_kernel(Rows k, Rows v, const std::int32_t* slots, KvGeometry kv) {
  const std::int32_t slot = slots[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y) * kStoreWarps + thread() / kWarpSize;  // of the keys, then of the values
  if (slot < 0 || head >= 2 * kv.heads) return;
  const Rows& x = head < kv.heads ? k : v;
  const float* from = x.data + blockIdx.x * x.stride + head % kv.heads * kv.dim;
  const int element = thread() % kWarpSize * 8;
  float values[8];
  for (int i = 0; i < 8; ++i) values[i] = element + i < kv.dim ? finite(from[element + i]) : 0.0F;
  const std::int64_t row = kv_row(kv, slot / kv.block_size, head >= kv.heads, head % kv.heads, slot % kv.block_size);
  KvFormat<type>::store(values, kv, row, element);
}

dim3 row_grid(const Rows& rows) { return {static_cast<unsigned>(rows.rows)}; }
dim3 element_grid(const Rows& rows) {
  return {static_cast<unsigned>(rows.rows), static_cast<unsigned>((rows.cols + kRowThreads - 1) / kRowThreads)};
}
constexpr std::size_t kPartialBytes = kRowThreads / kWarpSize * sizeof(float);

}  // namespace

void queue_rms_norm(Rows x, const float* weight, float eps, Rows out, cudaStream_t stream) {
  launch({row_grid(x), kRowThreads, kPartialBytes, stream, "rms_norm"}, rms_norm_kernel, x, weight, eps, out);
}

void queue_add_rms_norm(Rows residual, Rows delta, const float* weight, float eps, Rows out, cudaStream_t stream) {
  launch({row_grid(residual), kRowThreads, kPartialBytes, stream, "add_rms_norm"}, add_rms_norm_kernel, residual, delta, weight, eps, out);
}

void queue_head_rms_norm(Rows x, std::int32_t heads, const float* weight, float eps, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((static_cast<std::int64_t>(x.rows) * heads + kNormWarps - 1) / kNormWarps);
  launch({blocks, kNormWarps * kWarpSize, 0, stream, "head_rms_norm"}, head_rms_norm_kernel, x, heads, weight, eps);
}

void queue_add(Rows x, Rows delta, cudaStream_t stream) {
  launch({element_grid(x), kRowThreads, 0, stream, "add"}, add_kernel, x, delta);
}

void queue_swiglu(Rows gate_up, Rows out, cudaStream_t stream) {
  launch({element_grid(out), kRowThreads, 0, stream, "swiglu"}, swiglu_kernel, gate_up, out);
}

void queue_gather(Rows x, const std::int32_t* rows, Rows out, cudaStream_t stream) {
  launch({element_grid(out), kRowThreads, 0, stream, "gather"}, gather_kernel, x, rows, out);
}

void queue_rope(Rows x, std::int32_t heads, const std::int32_t* positions, const RopeView& rope, cudaStream_t stream) {
  const std::size_t shared = 2 * static_cast<std::size_t>(rope.pairs) * sizeof(float);
  launch({row_grid(x), kRowThreads, shared, stream, "rope"}, rope_kernel, x, heads, positions, rope);
}

void queue_store_kv(Rows k, Rows v, const std::int32_t* slots, const KvGeometry& kv, cudaStream_t stream) {
  const Launch how{row_grid(k), kRowThreads, 0, stream, "store_kv"};
  const dim3 heads(static_cast<unsigned>(k.rows), static_cast<unsigned>((2 * kv.heads + kStoreWarps - 1) / kStoreWarps));
  const Launch by_head{heads, kStoreWarps * kWarpSize, 0, stream, "store_kv"};
  switch (kv.type) {
    case KvType::f32: return launch(how, store_kv_kernel<KvType::f32>, k, v, slots, kv);
    case KvType::f16: return launch(how, store_kv_kernel<KvType::f16>, k, v, slots, kv);
    case KvType::bf16: return launch(how, store_kv_kernel<KvType::bf16>, k, v, slots, kv);
    case KvType::int8: return launch(by_head, store_quantised_kv_kernel<KvType::int8>, k, v, slots, kv);
    case KvType::fp8_e4m3: return launch(by_head, store_quantised_kv_kernel<KvType::fp8_e4m3>, k, v, slots, kv);
    case KvType::int4: return launch(by_head, store_quantised_kv_kernel<KvType::int4>, k, v, slots, kv);
  }
}

}  // namespace fixpoint::kernels::cuda
