#include "kernels/cuda/device_weight.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "kernels/cuda/error.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr std::int64_t kStagedBytes = std::int64_t{16} << 20U;

}  // namespace

std::int64_t StagedUpload::rows_at_once(std::int64_t pitch) { return std::max<std::int64_t>(1, kStagedBytes / pitch); }

std::byte* StagedUpload::next(std::size_t bytes) {
  current_ = 1 - current_;
  Buffer& buffer = buffers_[current_];
  buffer.sent.wait();
  if (buffer.memory.bytes() < bytes) buffer.memory = PinnedMemory(bytes);
  return buffer.memory.data();
}

void StagedUpload::send(std::byte* device, std::size_t bytes) {
  check(cudaMemcpyAsync(device, buffers_[current_].memory.data(), bytes, cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
  buffers_[current_].sent.record(stream_);
}

DeviceWeight::DeviceWeight(std::span<const Tensor> parts, StagedUpload& upload) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  cols_ = parts[0].shape[1];
  std::int64_t total = 0;
  for (const Tensor& part : parts) {
    rows_ += part.rows();
    bytes_ += part.bytes();
    total += part.rows() * row_pitch(part.dtype, cols_);
  }
  if (rows_ > kMost || cols_ > kMost) throw std::invalid_argument("load_weight: more than 2^31 rows or columns");
  memory_.reserve(static_cast<std::size_t>(total));
  std::byte* at = memory_.data();
  std::int32_t first_row = 0;
  for (const Tensor& part : parts) {
    const std::int64_t pitch = row_pitch(part.dtype, cols_);
    upload.rows(at, part.rows(), pitch, [&](std::byte* to, std::int64_t first, std::int64_t count) {
      const std::int64_t file_row = row_bytes(part.dtype, cols_);
      for (std::int64_t i = 0; i < count; ++i) pack_row(part.dtype, part.data + (first + i) * file_row, to + i * pitch, cols_);
    });
    parts_.push_back({part.dtype,
                      {reinterpret_cast<const std::uint8_t*>(at), pitch, static_cast<std::int32_t>(part.rows()), static_cast<std::int32_t>(cols_)},
                      first_row});
    first_row += static_cast<std::int32_t>(part.rows());
    at += part.rows() * pitch;
  }
}

}  // namespace fixpoint::kernels::cuda
