#pragma once

// What the kernels are written against, emulated: see kernels/cuda/nvcc/cuda_platform/platform.h for the device's own.

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/half.h"
#include "tests/cuda_emulation/emulated_stream.h"

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define threadIdx (::fixpoint::cuda_emulation::BlockRunner::current().thread().index)
#define blockIdx (::fixpoint::cuda_emulation::BlockRunner::current().block_index())
#define blockDim (::fixpoint::cuda_emulation::BlockRunner::current().block())
#define gridDim (::fixpoint::cuda_emulation::BlockRunner::current().grid())

inline void __syncthreads() { fixpoint::cuda_emulation::BlockRunner::current().block_barrier(); }

inline void __syncwarp() {
  const std::byte nothing{};
  fixpoint::cuda_emulation::BlockRunner::current().warp_exchange(fixpoint::cuda_emulation::WarpOperation::sync, ~0U, &nothing, 1);
}

template <class Value>
Value __shfl_sync(unsigned mask, Value value, int lane) {
  auto& runner = fixpoint::cuda_emulation::BlockRunner::current();
  runner.warp_exchange(fixpoint::cuda_emulation::WarpOperation::shuffle, mask, &value, sizeof value);
  std::memcpy(&value, runner.given(lane), sizeof value);
  return value;
}

template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int lane_mask) {
  auto& runner = fixpoint::cuda_emulation::BlockRunner::current();
  return __shfl_sync(mask, value, runner.thread().lane ^ lane_mask);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  auto& runner = fixpoint::cuda_emulation::BlockRunner::current();
  runner.warp_exchange(fixpoint::cuda_emulation::WarpOperation::vote, mask, &predicate, sizeof predicate);
  unsigned votes = 0;
  for (int lane = 0; lane < fixpoint::cuda_emulation::kWarpSize; ++lane) {
    int vote = 0;
    std::memcpy(&vote, runner.given(lane), sizeof vote);
    if (vote != 0) votes |= 1U << lane;
  }
  return votes;
}

namespace fixpoint::kernels::cuda {

inline constexpr int kWarpSize = cuda_emulation::kWarpSize;
inline constexpr unsigned kAllLanes = ~0U;

/// A word of shared memory: each access is seen by the race detector.
template <class T>
class SharedWord {
 public:
  explicit SharedWord(T* at) : at_(at) {}
  operator T() const {
    runner().shared_access(at_, sizeof(T), cuda_emulation::Access::read);
    return *at_;
  }
  const SharedWord& operator=(T value) const {
    runner().shared_access(at_, sizeof(T), cuda_emulation::Access::write);
    *at_ = value;
    return *this;
  }
  const SharedWord& operator=(const SharedWord& other) const { return *this = static_cast<T>(other); }
  const SharedWord& operator+=(T value) const { return *this = static_cast<T>(*this) + value; }
  T atomic_add(T value) const {
    runner().shared_access(at_, sizeof(T), cuda_emulation::Access::atomic);
    return std::exchange(*at_, *at_ + value);
  }

 private:
  static cuda_emulation::BlockRunner& runner() { return cuda_emulation::BlockRunner::current(); }
  T* at_;
};

template <class T>
class SharedArray {
 public:
  SharedArray(T* data, int size) : data_(data), size_(size) {}
  SharedWord<T> operator[](int i) const {
    if (i < 0 || i >= size_) {
      cuda_emulation::BlockRunner::current().fault("shared array of " + std::to_string(size_) + ", index " + std::to_string(i));
      i = 0;
    }
    return SharedWord<T>(data_ + i);
  }
  SharedArray slice(int first, int count) const {
    if (first < 0 || count < 0 || first + count > size_) {
      cuda_emulation::BlockRunner::current().fault("slice outside a shared array");
      return {data_, 0};
    }
    return {data_ + first, count};
  }
  /// Of element i, in the block's shared memory.
  std::ptrdiff_t byte_offset(int i) const {
    return reinterpret_cast<const std::byte*>(data_ + i) - cuda_emulation::BlockRunner::current().shared_memory();
  }

 private:
  T* data_;
  int size_;
};

template <class T>
T atomic_add(const SharedWord<T>& word, T value) {
  return word.atomic_add(value);
}

/// In device memory: here no two blocks run at a time.
template <class T>
T atomic_add(T& word, T value) {
  return std::exchange(word, word + value);
}

/// Hands out the block's dynamic shared memory, in words of four bytes.
class SharedArena {
 public:
  template <class T>
  SharedArray<T> take(int count) {
    auto& runner = cuda_emulation::BlockRunner::current();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (used_ + bytes > runner.shared_bytes()) {
      runner.fault("the kernel takes more shared memory than it was launched with");
      return {nullptr, 0};
    }
    auto* data = reinterpret_cast<T*>(runner.shared_memory() + used_);
    used_ += bytes;
    return {data, count};
  }

 private:
  std::size_t used_ = 0;
};

inline float half_to_float(std::uint16_t bits) { return f16_to_f32(bits); }
inline std::uint16_t float_to_half(float value) { return f32_to_f16(value); }
inline float bfloat_to_float(std::uint16_t bits) { return bf16_to_f32(bits); }
inline std::uint16_t float_to_bfloat(float value) { return f32_to_bf16(value); }

inline std::uint32_t float_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// a * b + c; rounded once on a device.
inline float fused(float a, float b, float c) { return a * b + c; }
inline float fast_exp(float x) { return std::exp(x); }

struct Words4 {
  std::uint32_t w[4];
};
struct Floats4 {
  float v[4];
};
/// `from` is aligned to what is read: UBSan checks it here.
inline std::uint32_t load_word(const void* from) { return *static_cast<const std::uint32_t*>(from); }
inline Words4 load_words4(const void* from) {
  const auto* words = static_cast<const std::uint32_t*>(from);
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) {
    cuda_emulation::BlockRunner::current().fault("a load of 16 bytes from an address that is no multiple of 16");
  }
  return {{words[0], words[1], words[2], words[3]}};
}
inline Floats4 load_floats4(const float* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) {
    cuda_emulation::BlockRunner::current().fault("a load of 16 bytes from an address that is no multiple of 16");
  }
  return {{from[0], from[1], from[2], from[3]}};
}

inline void store_words4(const SharedArray<std::uint32_t>& to, int i, const Words4& words) {
  if (to.byte_offset(i) % 16 != 0) {
    cuda_emulation::BlockRunner::current().fault("a store of 16 bytes to an address that is no multiple of 16");
  }
  for (int j = 0; j < 4; ++j) to[i + j] = words.w[j];
}

template <class... Parameters>
cudaError_t start_kernel(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, void (*kernel)(Parameters...),
                         Parameters... arguments) {
  cuda_emulation::launch(grid, block, shared_bytes, stream, [=] { kernel(arguments...); });
  return cudaSuccess;
}

}  // namespace fixpoint::kernels::cuda
