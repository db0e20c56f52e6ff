#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/handles.h"

namespace fixpoint::kernels::cuda {

/// Brings host arrays to the device without waiting: they are copied into page-locked memory first. A ring: where it is full, it
/// waits for the stream, starts over and grows if it must. What `put` returned is valid for the work that is queued before the
/// next `put`; arrays that are used together need `reserve`.
class IndexUpload {
 public:
  explicit IndexUpload(const Stream& stream);

  /// Room for so many bytes in so many arrays: what is put next stays valid until they are used up.
  void reserve(std::size_t bytes, std::size_t arrays);

  template <class T>
  [[nodiscard]] const T* put(std::span<const T> values) {
    return static_cast<const T*>(put_bytes(values.data(), values.size_bytes(), nullptr));
  }
  /// To a place of the caller's.
  void put_at(std::byte* device, const void* values, std::size_t bytes) { static_cast<void>(put_bytes(values, bytes, device)); }

 private:
  [[nodiscard]] const void* put_bytes(const void* values, std::size_t bytes, std::byte* device);

  const Stream& stream_;
  PinnedMemory host_;
  DeviceMemory device_;
  std::size_t used_ = 0;
};

}  // namespace fixpoint::kernels::cuda
