#include "cli/terminal.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"

namespace fixpoint::cli {

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

bool colours_on_stdout() {
  const char* term = std::getenv("TERM");
  return stdout_is_terminal() && std::getenv("NO_COLOR") == nullptr && term != nullptr && std::string_view(term) != "dumb";
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
    const bool above_ascii = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;  // U+0080 to U+009F
    const bool control = (byte(i) < 0x20 && text[i] != '\n' && text[i] != '\t') || byte(i) == 0x7f || above_ascii;
    out += control ? '?' : text[i];
    if (above_ascii) ++i;
  }
  return out;
}

std::string human_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

int fail(std::string_view message) {
  std::fprintf(stderr, "fixpoint: %.*s\n", static_cast<int>(message.size()), message.data());
  return kFailure;
}

int wrong_usage(std::string_view message) {
  fail(message);
  return kUsage;
}

}  // namespace fixpoint::cli
