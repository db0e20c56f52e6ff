#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace fixpoint::cli {

/// The file, or stdin for "-". Error: the file's name and why it cannot be read.
[[nodiscard]] tl::expected<std::string, std::string> read_input(const std::string& file);

/// Where `text` first has a byte that no text has: a zero, or what is not UTF-8.
[[nodiscard]] std::optional<std::size_t> first_byte_of_no_text(std::string_view text);

/// The same, of a text. Error, too: the file's name and the first byte that is zero or not UTF-8.
[[nodiscard]] tl::expected<std::string, std::string> read_text(const std::string& file);

}  // namespace fixpoint::cli
