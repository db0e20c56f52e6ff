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

/// What a child of this process is going to touch.
struct UsualPages {
  std::vector<PageRun> written;  ///< private memory: each page is copied on the first write
  std::vector<PageRun> read;     ///< of files: a child has none of them mapped at first
};

/// `written` are the writable private pages of this process that no child shares any more, because it or the child has written
/// to them since the fork; `read` are the pages of programs and libraries that this process has mapped. `maps` and `pages` are
/// this process's /proc/self/maps and pagemap; empty where they cannot be read.
[[nodiscard]] UsualPages usual_pages(int maps, int pages);

/// Gives this process its own copy of each written page and maps each read one; what the kernel cannot do is left for later
/// faults.
void touch_pages(const UsualPages& pages);

}  // namespace fixpoint::sandbox::detail
