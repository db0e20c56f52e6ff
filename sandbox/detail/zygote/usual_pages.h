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

/// From `maps`, this process's /proc/PID/maps, and `pages`, the pagemap of a child that did what programs do: whatever else this
/// process has forked shares pages with it, but not with that child. `written` are the writable private pages that the child has
/// for itself; `read` are the pages of programs and libraries that it has mapped. Empty where they cannot be read.
[[nodiscard]] UsualPages usual_pages(int maps, int pages);

/// Gives this process its own copy of each written page and maps each read one; what the kernel cannot do is left for later
/// faults.
void touch_pages(const UsualPages& pages);

}  // namespace fixpoint::sandbox::detail
