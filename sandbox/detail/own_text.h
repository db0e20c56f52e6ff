#pragma once

namespace fixpoint::sandbox::detail {

/// Moves the calling program's code from its file's pages to a huge page at the same addresses. A fork copies one entry of the page table
/// for it. Of a file's pages it copies none, and the child, which lives for a millisecond, finds them again by some seventeen faults. Changes
/// nothing where there is no huge page to be had, or where code and data share one (core.cmake sees to it that they don't). For a static
/// program with one thread.
void take_text_from_its_file();

}  // namespace fixpoint::sandbox::detail
