#include "kernels/cpu/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace fixpoint::kernels::cpu {

namespace {

void* map(std::size_t bytes) {
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  return mapping;
}

void unmap(void* data, std::size_t bytes, void* /*context*/) { munmap(data, bytes); }

}  // namespace

Buffer allocate_small(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  return {map(size), size, unmap, nullptr};
}

Buffer allocate_huge(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20U;
  const std::size_t size = (std::max<std::size_t>(bytes, 1) + kHugePage - 1) / kHugePage * kHugePage;
  auto* start = static_cast<std::byte*>(map(size + kHugePage));
  const std::size_t skip = (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  if (skip > 0) munmap(start, skip);
  if (skip < kHugePage) munmap(start + skip + size, kHugePage - skip);
  madvise(start + skip, size, MADV_HUGEPAGE);
  return {start + skip, size, unmap, nullptr};
}

}  // namespace fixpoint::kernels::cpu
