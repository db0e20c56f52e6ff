#include "kernels/cuda/index_upload.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/error.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr std::size_t kRingBytes = std::size_t{4} << 20U;
constexpr std::size_t kAlignment = 16;

}  // namespace

IndexUpload::IndexUpload(const Stream& stream) : stream_(stream), host_(kRingBytes), device_(kRingBytes) {}

void IndexUpload::reserve(std::size_t bytes, std::size_t arrays) {
  const std::size_t needed = bytes + arrays * kAlignment;
  const auto capacity = [&] { return std::min(host_.bytes(), device_.bytes()); };  // one is less where there was no room to grow
  if (used_ + needed <= capacity()) return;
  stream_.synchronize();
  used_ = 0;
  if (needed <= capacity()) return;
  const std::size_t grown = std::max(kRingBytes, 2 * needed);
  device_.reserve(grown);
  if (host_.bytes() < grown) host_ = PinnedMemory(grown);
}

const void* IndexUpload::put_bytes(const void* values, std::size_t bytes, std::byte* device) {
  if (bytes == 0) return device_.data();
  reserve(bytes, 0);
  std::byte* from = host_.data() + used_;
  std::byte* to = device != nullptr ? device : device_.data() + used_;
  std::memcpy(from, values, bytes);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
  used_ = (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return to;
}

}  // namespace fixpoint::kernels::cuda
