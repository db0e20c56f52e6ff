#pragma once

#include <string>
#include <string_view>

namespace fixpoint::cli {

/// Whether stdout is a terminal that shows colours (NO_COLOR and TERM=dumb are honoured).
[[nodiscard]] bool colours_on_stdout();
[[nodiscard]] bool stdout_is_terminal();

/// A program's, a model's or a client's text, without what could steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// "1.2 GiB"
[[nodiscard]] std::string human_bytes(double bytes);

/// Prints "fixpoint: MESSAGE" to stderr and returns kFailure.
int fail(std::string_view message);
/// Prints the same and returns kUsage.
int wrong_usage(std::string_view message);

}  // namespace fixpoint::cli
