#include "sandbox/detail/own_text.h"

#include <link.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::uintptr_t kHugePage = 2U << 20;

/// Anonymous memory of `size` bytes that begins at a multiple of kHugePage, or null.
void* aligned_memory(std::size_t size) {
  void* wide = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (wide == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(wide);
  const std::uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned != start) ::munmap(wide, aligned - start);
  const std::uintptr_t end = aligned + size, wide_end = start + size + kHugePage;
  if (end != wide_end) ::munmap(reinterpret_cast<void*>(end), wide_end - end);
  return reinterpret_cast<void*>(aligned);
}

/// Whether the mapping that begins at `start` lies in huge pages.
bool is_huge(std::uintptr_t start) {
  FILE* mappings = std::fopen("/proc/self/smaps", "re");
  if (mappings == nullptr) return false;
  char line[512];
  bool here = false, huge = false;
  while (std::fgets(line, sizeof line, mappings) != nullptr) {
    unsigned long begin = 0, end = 0, kilobytes = 0;
    if (std::sscanf(line, "%lx-%lx ", &begin, &end) == 2) here = begin == start;
    else if (here && std::sscanf(line, "AnonHugePages: %lu", &kilobytes) == 1) huge = kilobytes * 1024 >= kHugePage;
  }
  std::fclose(mappings);
  return huge;
}

/// mremap puts the copy in the segment's place: the code that runs here is there before and after.
void move_segment(std::uintptr_t start, std::size_t size) {
  const std::size_t whole = (size + kHugePage - 1) / kHugePage * kHugePage;
  void* copy = aligned_memory(whole);
  if (copy == nullptr) return;
  ::madvise(copy, whole, MADV_HUGEPAGE);
  void* segment = reinterpret_cast<void*>(start);
  std::memcpy(copy, segment, size);
  if (!is_huge(reinterpret_cast<std::uintptr_t>(copy)) || ::mprotect(copy, whole, PROT_READ | PROT_EXEC) != 0 ||
      ::mremap(copy, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED, segment) == MAP_FAILED) {
    ::munmap(copy, whole);
  }
}

/// Only what is linked for it: a segment that has its huge pages to itself.
int move_text(dl_phdr_info* program, std::size_t, void*) {
  const auto begins = [program](const ElfW(Phdr)& header) { return program->dlpi_addr + header.p_vaddr; };
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const ElfW(Phdr)& text = program->dlpi_phdr[i];
    if (text.p_type != PT_LOAD || (text.p_flags & PF_X) == 0 || begins(text) % kHugePage != 0) continue;
    bool alone = true;
    for (int j = 0; j < program->dlpi_phnum; ++j) {
      const ElfW(Phdr)& other = program->dlpi_phdr[j];
      if (j != i && other.p_type == PT_LOAD && begins(other) / kHugePage <= (begins(text) + text.p_memsz) / kHugePage) alone = false;
    }
    if (alone) move_segment(begins(text), text.p_memsz);
  }
  return 1;  // the program comes first; a static one has nothing else but the vDSO
}

}  // namespace

void take_text_from_its_file() { ::dl_iterate_phdr(move_text, nullptr); }

}  // namespace fixpoint::sandbox::detail
