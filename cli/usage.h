#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fixpoint::cli {

/// What main prints for a command line that doesn't parse: where no command, or none that exists, was named, the wrong word and
/// the commands there are; else what CLI11 says of the option.
[[nodiscard]] std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fixpoint::cli
