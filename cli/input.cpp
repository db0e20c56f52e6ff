#include "cli/input.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace fixpoint::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) static_cast<void>(std::fclose(file));
  }
};

}  // namespace

tl::expected<std::string, std::string> read_input(const std::string& file) {
  const auto failed = [&] { return tl::unexpected("cannot read '" + file + "': " + std::strerror(errno)); };
  const std::unique_ptr<std::FILE, CloseFile> in(file == "-" ? stdin : std::fopen(file.c_str(), "rbe"));
  if (!in) return failed();
  std::string text;
  std::array<char, 65536> part{};
  while (const auto read = std::fread(part.data(), 1, part.size(), in.get())) text.append(part.data(), read);
  if (std::ferror(in.get()) != 0) return failed();
  return text;
}

}  // namespace fixpoint::cli
