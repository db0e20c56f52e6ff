#include "evals/detail/check_asserts.h"

#include "sandbox/check.h"

namespace fixpoint::evals::detail {
namespace {

constexpr std::string_view kHead = "def check(candidate):";
constexpr std::string_view kCandidate = "assert candidate(";

/// The next line without its end; removes it from `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

/// Removes what stands before the function: empty lines, and HumanEval's METADATA. False where there is anything else.
bool skip_head(std::string_view& text) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line == kHead) return true;
    if (line.empty()) continue;
    if (line != "METADATA = {" && line != "METADATA = {}") return false;
    while (!text.empty() && line != "}" && line != "METADATA = {}") line = take_line(text);
  }
  return false;
}

bool always_true(std::string_view line) { return line == "assert True" || line.starts_with("assert True,"); }

/// The statement without the message of its assertion: what follows a comma outside of quotes and brackets.
std::string_view without_message(std::string_view line) {
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == '\\') ++i;
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == '#') {
      break;
    } else if (c == ',' && depth == 0) {
      return line.substr(0, i);
    }
  }
  return line;
}

}  // namespace

std::optional<std::string> check_as_asserts(std::string_view source, std::string_view entry_point) {
  if (entry_point.empty() || !skip_head(source)) return std::nullopt;
  std::string out;
  while (!source.empty()) {
    std::string_view line = take_line(source);
    if (line.empty()) continue;
    const std::size_t indent = line.find_first_not_of(' ');
    // A text over several lines would lose its indentation.
    const bool long_text = line.find("\"\"\"") != std::string_view::npos || line.find("'''") != std::string_view::npos || line.ends_with('\\');
    if (indent == 0 || long_text) return std::nullopt;
    line.remove_prefix(indent);
    if (line.starts_with('#') || always_true(line)) continue;
    if (line.starts_with("assert ")) line = without_message(line);
    if (line.starts_with(kCandidate)) {
      out.append("assert ").append(entry_point).append("(");
      line.remove_prefix(kCandidate.size());
    }
    out.append(line).append("\n");
  }
  if (out.empty() || !sandbox::parse_simple_asserts(out, entry_point)) return std::nullopt;
  return out;
}

}  // namespace fixpoint::evals::detail
