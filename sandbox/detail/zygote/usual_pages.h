#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Neighbouring pages of this process.
struct PageRun {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

/// What a child of this process is going to touch.
struct UsualPages {
  std::vector<PageRun> written;  ///< private memory: each page is copied on the first write
  std::vector<PageRun> read;     ///< of files: a child has none of them mapped at first, and each takes time at its end, too
};

/// What shows a process's pages.
struct PageFiles {
  UniqueFd maps;   ///< /proc/PID/maps of this process, which a child of it shares
  UniqueFd trial;  ///< the pagemap of a child that did what programs do
};

/// `written` are the writable private pages that the child has for itself, `read` the pages of programs and libraries that it has
/// mapped. (This process's own pagemap lacks those that it shares with other children, and has many that only its start needed.)
/// Empty where the files cannot be read.
[[nodiscard]] UsualPages usual_pages(const PageFiles& files);

/// Gives this process its own copy of each written page and maps each read one; what the kernel cannot do is left for later
/// faults.
void touch_pages(const UsualPages& pages);

}  // namespace fixpoint::sandbox::detail
