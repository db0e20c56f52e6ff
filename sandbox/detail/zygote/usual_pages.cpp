#include "sandbox/detail/zygote/usual_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace fixpoint::sandbox::detail {

namespace {

// MADV_POPULATE_READ and MADV_POPULATE_WRITE, Linux 5.14; older headers lack them.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

// Of an entry of pagemap.
constexpr std::uint64_t kPresent = 1ULL << 63, kExclusive = 1ULL << 56;

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(file, buffer.data(), buffer.size())) > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  return text;
}

/// Appends what of [begin, end) has all of `flags`.
void append_pages(int pages, std::uintptr_t begin, std::uintptr_t end, std::uint64_t flags, std::vector<PageRun>& runs) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::array<std::uint64_t, 512> entries{};
  while (begin < end) {
    const std::size_t wanted = std::min<std::size_t>(entries.size(), (end - begin) / page);
    const ssize_t got = ::pread(pages, entries.data(), wanted * sizeof entries[0], static_cast<off_t>(begin / page * sizeof entries[0]));
    if (got <= 0) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof entries[0]; ++i, begin += page) {
      if ((entries[i] & flags) != flags) continue;
      if (!runs.empty() && runs.back().begin + runs.back().bytes == begin) runs.back().bytes += page;
      else runs.push_back({begin, page});
    }
  }
}

void advise(const std::vector<PageRun>& runs, int advice) {
  for (const PageRun& run : runs) (void)::madvise(reinterpret_cast<void*>(run.begin), run.bytes, advice);
}

}  // namespace

UsualPages usual_pages(const PageFiles& files) {
  UsualPages usual;
  const std::string text = read_all(files.maps.get());
  std::string_view rest = text;
  while (!rest.empty()) {
    // "begin-end rw-p offset device inode path"
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    char* after = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &after, 16);
    if (*after != '-') continue;
    const std::uintptr_t end = std::strtoull(after + 1, &after, 16);
    const std::string_view kind(after);
    if (kind.starts_with(" rw-p")) append_pages(files.trial.get(), begin, end, kPresent | kExclusive, usual.written);
    const bool of_file = (kind.starts_with(" r-xp") || kind.starts_with(" r--p")) && kind.find('/') != kind.npos;
    if (of_file) append_pages(files.trial.get(), begin, end, kPresent, usual.read);
  }
  return usual;
}

void touch_pages(const UsualPages& pages) {
  advise(pages.written, kPopulateWrite);
  advise(pages.read, kPopulateRead);
}

}  // namespace fixpoint::sandbox::detail
