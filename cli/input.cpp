#include "cli/input.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "engine/utf8.h"

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

std::optional<std::size_t> first_byte_of_no_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto step = engine::utf8_step(text, at);
    if (text[at] == '\0' || step.kind != engine::Utf8Step::Kind::character) return at;
    at += step.length;
  }
  return std::nullopt;
}

tl::expected<std::string, std::string> read_text(const std::string& file) {
  auto text = read_input(file);
  if (!text) return text;
  const auto at = first_byte_of_no_text(*text);
  if (!at) return text;
  const char* wrong = (*text)[*at] == '\0' ? " is zero" : " is not UTF-8";
  return tl::unexpected("'" + file + "' is no text: the byte at offset " + std::to_string(*at) + wrong);
}

}  // namespace fixpoint::cli
