#include "kernels/cuda/row_kernels.h"

#include <cuda_platform/platform.h>

#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/quantised_kv.h"
#include "kernels/cuda/reduce.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr int kHeadWarps = kRowThreads / kWarpSize;
constexpr std::int32_t kEnoughBlocks = 1024;  // for any device

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

// A warp has a head to itself from its norm to its block.

inline __device__ void normalise_head(float* head, std::int32_t dim, const float* weight, float eps) {
  const int lane = thread() % kWarpSize;
  float sum = 0.0F;
  for (int i = lane; i < dim; i += kWarpSize) sum = fused(head[i], head[i], sum);
  const float scale = norm_scale(warp_sum(sum), dim, eps);
  for (int i = lane; i < dim; i += kWarpSize) head[i] = head[i] * scale * weight[i];
  __syncwarp();
}

inline __device__ void rotate_head(float* head, const RopeView& rope, SharedArray<float> cosines,
                                   SharedArray<float> sines) {
  for (int pair = thread() % kWarpSize; pair < rope.pairs; pair += kWarpSize) {
    float* a = head + (rope.adjacent ? 2 * pair : pair);
    float* b = rope.adjacent ? a + 1 : a + rope.pairs;
    const float c = cosines[pair];
    const float s = sines[pair];
    const float rotated_a = fused(*a, c, -(*b * s));
    const float rotated_b = fused(*a, s, *b * c);
    *a = rotated_a;
    *b = rotated_b;
  }
  __syncwarp();
}

template <KvType type>
__device__ void store_head(const float* head, const KvGeometry& kv, std::int64_t row) {
  const int lane = thread() % kWarpSize;
  if constexpr (kQuantised<type>) {
    float values[8];
    for (int i = 0; i < 8; ++i) values[i] = 8 * lane + i < kv.dim ? finite(head[8 * lane + i]) : 0.0F;
    KvFormat<type>::store(values, kv, row, 8 * lane);
  } else {
    auto* to = reinterpret_cast<typename KvFormat<type>::Element*>(kv.data) + row * kv.padded_dim;
    for (int i = lane; i < kv.padded_dim; i += kWarpSize) to[i] = KvFormat<type>::store(i < kv.dim ? head[i] : 0.0F);
  }
}

/// A token's heads: of the queries, then of the keys, then of the values. They share its angles.
template <KvType type>
__global__ void rotate_and_store_kernel(Rows q, Rows k, Rows v, HeadNormView norm, RopeView rope,
                                        const std::int32_t* positions, const std::int32_t* slots, KvGeometry kv) {
  const std::int32_t slot = slots[blockIdx.x];
  if (slot < 0) return;
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
  const int queries = q.cols / kv.dim;
  const int first = static_cast<int>(blockIdx.y) * kHeadWarps + thread() / kWarpSize;
  const int warps = static_cast<int>(gridDim.y) * kHeadWarps;
  for (int i = first; i < queries + 2 * kv.heads; i += warps) {
    const bool of_query = i < queries;
    const bool of_value = i >= queries + kv.heads;
    const int index = of_query ? i : (i - queries) % kv.heads;
    const Rows& x = of_query ? q : of_value ? v : k;
    float* head = x.data + blockIdx.x * x.stride + index * kv.dim;
    if (!of_value) {
      const float* weight = of_query ? norm.q : norm.k;
      if (weight != nullptr) normalise_head(head, kv.dim, weight, norm.eps);
      rotate_head(head, rope, cosines, sines);
    }
    if (!of_query) store_head<type>(head, kv, kv_row(kv, slot / kv.block_size, of_value, index, slot % kv.block_size));
  }
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

void queue_add(Rows x, Rows delta, cudaStream_t stream) {
  launch({element_grid(x), kRowThreads, 0, stream, "add"}, add_kernel, x, delta);
}

void queue_swiglu(Rows gate_up, Rows out, cudaStream_t stream) {
  launch({element_grid(out), kRowThreads, 0, stream, "swiglu"}, swiglu_kernel, gate_up, out);
}

void queue_gather(Rows x, const std::int32_t* rows, Rows out, cudaStream_t stream) {
  launch({element_grid(out), kRowThreads, 0, stream, "gather"}, gather_kernel, x, rows, out);
}

void queue_rotate_and_store(Rows q, Rows k, Rows v, const HeadNormView& norm, const RopeView& rope,
                            const std::int32_t* positions, const std::int32_t* slots, const KvGeometry& kv,
                            cudaStream_t stream) {
  // A warp for each head of few tokens; of many, a block for each token, which computes its angles once.
  const int heads = (q.cols + k.cols + v.cols) / kv.dim;
  const int groups = std::clamp(kEnoughBlocks / std::max(k.rows, 1), 1, (heads + kHeadWarps - 1) / kHeadWarps);
  const dim3 grid(static_cast<unsigned>(k.rows), static_cast<unsigned>(groups));
  const std::size_t shared = 2 * static_cast<std::size_t>(rope.pairs) * sizeof(float);
  const auto start = [&](auto* kernel) {
    launch({grid, kRowThreads, shared, stream, "rotate_and_store"}, kernel, q, k, v, norm, rope, positions, slots, kv);
  };
  switch (kv.type) {
    case KvType::f32: return start(rotate_and_store_kernel<KvType::f32>);
    case KvType::f16: return start(rotate_and_store_kernel<KvType::f16>);
    case KvType::bf16: return start(rotate_and_store_kernel<KvType::bf16>);
    case KvType::int8: return start(rotate_and_store_kernel<KvType::int8>);
    case KvType::fp8_e4m3: return start(rotate_and_store_kernel<KvType::fp8_e4m3>);
    case KvType::int4: return start(rotate_and_store_kernel<KvType::int4>);
  }
}

}  // namespace fixpoint::kernels::cuda
