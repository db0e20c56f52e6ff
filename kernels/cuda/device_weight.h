#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/block_layout.h"
#include "kernels/cuda/handles.h"

namespace fixpoint::kernels::cuda {

/// Copies to the device through two page-locked buffers: one is filled while the other is being copied. On the backend's
/// own stream: what uses a weight comes after its copies, and there is no other work while a model loads.
class StagedUpload {
 public:
  explicit StagedUpload(const Stream& stream) : stream_(stream) {}
  /// `fill(to, first, count)` writes rows first..first + count, `pitch` bytes each, of `rows` in all.
  template <class Fill>
  void rows(std::byte* device, std::int64_t rows, std::int64_t pitch, const Fill& fill) {
    for (std::int64_t first = 0; first < rows;) {
      const std::int64_t count = std::min(rows - first, rows_at_once(pitch));
      std::byte* to = next(static_cast<std::size_t>(count * pitch));
      fill(to, first, count);
      send(device + first * pitch, static_cast<std::size_t>(count * pitch));
      first += count;
    }
  }

 private:
  [[nodiscard]] static std::int64_t rows_at_once(std::int64_t pitch);
  [[nodiscard]] std::byte* next(std::size_t bytes);
  void send(std::byte* device, std::size_t bytes);

  struct Buffer {
    PinnedMemory memory;
    Event sent;
  };
  const Stream& stream_;
  Buffer buffers_[2];
  int current_ = 0;
};

/// A weight in device memory, a matrix a part, in the layout of block_formats.h.
class DeviceWeight final : public Weight {
 public:
  struct Part {
    DType type;
    MatrixView view;
    std::int32_t first_row;
  };

  DeviceWeight(std::span<const Tensor> parts, StagedUpload& upload);
  [[nodiscard]] std::span<const Part> parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
  DeviceMemory memory_;
};

}  // namespace fixpoint::kernels::cuda
