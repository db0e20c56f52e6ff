#pragma once

#include <string>
#include <tl/expected.hpp>

namespace fixpoint::cli {

/// The file, or stdin for "-". Error: the file's name and why it cannot be read.
[[nodiscard]] tl::expected<std::string, std::string> read_input(const std::string& file);

}  // namespace fixpoint::cli
