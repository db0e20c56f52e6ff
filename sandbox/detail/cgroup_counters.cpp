#include "sandbox/detail/cgroup_counters.h"

#include <unistd.h>

#include <charconv>

namespace fixpoint::sandbox::detail {

CgroupCounters CounterFiles::read() const {
  const std::uint64_t highest = parse_number(reread(peak));
  return {parse_cpu_counter(reread(cpu)), highest > kept_bytes ? highest - kept_bytes : 0, parse_field(reread(oom), "oom_kill"),
          parse_field(reread(forks), "max")};
}

std::string reread(const UniqueFd& file) {
  char text[1024];
  const ssize_t got = file.valid() ? ::pread(file.get(), text, sizeof text, 0) : 0;
  return {text, got < 0 ? 0 : static_cast<std::size_t>(got)};
}

std::uint64_t parse_cpu_counter(std::string_view text) {
  if (text.starts_with("usage_usec")) return parse_field(text, "usage_usec");
  return parse_number(text) / 1000;
}

std::uint64_t parse_number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t parse_field(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return parse_number(line.substr(key.size() + 1));
    }
    at += line.size() + 1;
  }
  return 0;
}

}  // namespace fixpoint::sandbox::detail
