#include "kernels/cuda/index_upload.h"

#include <cstring>

#include "kernels/cuda/error.h"

namespace fixpoint::kernels::cuda {
namespace {

constexpr std::size_t kRingBytes = std::size_t{4} << 20U;
constexpr std::size_t kAlignment = 16;

}  // namespace

IndexUpload::IndexUpload(const Stream& stream) : stream_(stream), host_(kRingBytes), device_(kRingBytes) {}

const void* IndexUpload::put_bytes(const void* values, std::size_t bytes, std::byte* device) {
  if (bytes == 0) return device_.data();
  if (used_ + bytes > host_.bytes()) {
    stream_.synchronize();
    used_ = 0;
    if (bytes > host_.bytes()) {
      host_ = PinnedMemory(2 * bytes);
      device_.reserve(2 * bytes);
    }
  }
  std::byte* from = host_.data() + used_;
  std::byte* to = device != nullptr ? device : device_.data() + used_;
  std::memcpy(from, values, bytes);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
  used_ = (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return to;
}

}  // namespace fixpoint::kernels::cuda
