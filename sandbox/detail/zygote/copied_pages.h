#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fixpoint::sandbox::detail {

/// Neighbouring pages of this process.
struct PageRun {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

/// The writable private pages of this process that no child shares any more, because it or the child has written to them since
/// the fork. `maps` and `pages` are this process's /proc/self/maps and pagemap; empty where they cannot be read.
[[nodiscard]] std::vector<PageRun> copied_pages(int maps, int pages);

/// Gives this process its own writable copy of each; what the kernel cannot do is left for later faults.
void copy_pages(const std::vector<PageRun>& runs);

}  // namespace fixpoint::sandbox::detail
