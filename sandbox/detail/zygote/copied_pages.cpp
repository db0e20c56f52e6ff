#include "sandbox/detail/zygote/copied_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace fixpoint::sandbox::detail {

namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14; older headers lack it

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(file, buffer.data(), buffer.size())) > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  return text;
}

/// Appends what of [begin, end) is present and mapped by this process alone.
void append_exclusive(int pages, std::uintptr_t begin, std::uintptr_t end, std::size_t page, std::vector<PageRun>& runs) {
  constexpr std::uint64_t kPresent = 1ULL << 63, kExclusive = 1ULL << 56;
  std::array<std::uint64_t, 512> entries{};
  while (begin < end) {
    const std::size_t wanted = std::min<std::size_t>(entries.size(), (end - begin) / page);
    const ssize_t got = ::pread(pages, entries.data(), wanted * sizeof entries[0], static_cast<off_t>(begin / page * sizeof entries[0]));
    if (got <= 0) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof entries[0]; ++i, begin += page) {
      if ((entries[i] & kPresent) == 0 || (entries[i] & kExclusive) == 0) continue;
      if (!runs.empty() && runs.back().begin + runs.back().bytes == begin) runs.back().bytes += page;
      else runs.push_back({begin, page});
    }
  }
}

}  // namespace

std::vector<PageRun> copied_pages(int maps, int pages) {
  std::vector<PageRun> runs;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::string text = read_all(maps);
  std::string_view rest = text;
  while (!rest.empty()) {
    // "begin-end rw-p …"
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    char* after = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &after, 16);
    if (*after != '-') continue;
    const std::uintptr_t end = std::strtoull(after + 1, &after, 16);
    if (std::string_view(after).starts_with(" rw-p")) append_exclusive(pages, begin, end, page, runs);
  }
  return runs;
}

void copy_pages(const std::vector<PageRun>& runs) {
  for (const PageRun& run : runs) (void)::madvise(reinterpret_cast<void*>(run.begin), run.bytes, kPopulateWrite);
}

}  // namespace fixpoint::sandbox::detail
