#include "kernels/cpu/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace fixpoint::kernels::cpu {

Buffer allocate_huge(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20U;
  const std::size_t size = (std::max<std::size_t>(bytes, 1) + kHugePage - 1) / kHugePage * kHugePage;
  void* mapping = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  auto* start = static_cast<std::byte*>(mapping);
  const std::size_t skip = (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  if (skip > 0) munmap(start, skip);
  if (skip < kHugePage) munmap(start + skip + size, kHugePage - skip);
  madvise(start + skip, size, MADV_HUGEPAGE);
  return {start + skip, size, [](void* data, std::size_t mapped, void*) { munmap(data, mapped); }, nullptr};
}

}  // namespace fixpoint::kernels::cpu
