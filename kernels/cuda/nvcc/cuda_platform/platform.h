#pragma once

// What the kernels are written against, on a device: a few names over CUDA's own. tests/cuda_emulation has the same names
// for plain C++, where each access to shared memory is checked.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace fixpoint::kernels::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

/// Values in shared memory.
template <class T>
class SharedArray {
 public:
  __device__ SharedArray(T* data, int) : data_(data) {}
  __device__ T& operator[](int i) const { return data_[i]; }
  __device__ SharedArray slice(int first, int count) const { return {data_ + first, count}; }

 private:
  T* data_;
};

/// In shared or in device memory.
template <class T>
__device__ T atomic_add(T& word, T value) {
  return atomicAdd(&word, value);
}

/// Hands out the block's dynamic shared memory, in words of four bytes.
class SharedArena {
 public:
  template <class T>
  __device__ SharedArray<T> take(int count) {
    extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];
    auto* data = reinterpret_cast<T*>(dynamic_shared_memory + used_);
    used_ += count * static_cast<int>(sizeof(T));
    return {data, count};
  }

 private:
  int used_ = 0;
};

inline __device__ float half_to_float(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
inline __device__ std::uint16_t float_to_half(float value) { return __half_as_ushort(__float2half_rn(value)); }
inline __device__ float bfloat_to_float(std::uint16_t bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16U); }
inline __device__ std::uint16_t float_to_bfloat(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }

inline __device__ std::uint32_t float_bits(float value) { return __float_as_uint(value); }

/// a * b + c, rounded once.
inline __device__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
/// Within 2 units in the last place.
inline __device__ float fast_exp(float x) { return expf(x); }

struct alignas(16) Words4 {
  std::uint32_t w[4];
};
struct alignas(16) Floats4 {
  float v[4];
};
/// `from` is aligned to what is read.
inline __device__ std::uint32_t load_word(const void* from) { return __ldg(static_cast<const unsigned*>(from)); }
inline __device__ Words4 load_words4(const void* from) {
  const uint4 q = __ldg(static_cast<const uint4*>(from));
  return {{q.x, q.y, q.z, q.w}};
}
inline __device__ Floats4 load_floats4(const float* from) {
  const float4 q = __ldg(reinterpret_cast<const float4*>(from));
  return {{q.x, q.y, q.z, q.w}};
}

/// To words i..i + 3 of shared memory; the array and i are multiples of 4 words.
inline __device__ void store_words4(const SharedArray<std::uint32_t>& to, int i, const Words4& words) {
  *reinterpret_cast<uint4*>(&to[i]) = make_uint4(words.w[0], words.w[1], words.w[2], words.w[3]);
}

template <class... Parameters>
cudaError_t start_kernel(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, void (*kernel)(Parameters...),
                         Parameters... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, shared_bytes, stream);
}

}  // namespace fixpoint::kernels::cuda
