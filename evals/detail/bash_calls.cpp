#include "evals/detail/bash_calls.h"

namespace fixpoint::evals::detail {
namespace {

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

std::optional<BashCall> parse_call(std::string_view line) {
  if (!take(line, "    [[ $(candidate") || !line.ends_with(" ]]")) return std::nullopt;
  line.remove_suffix(3);
  const std::size_t equals = line.rfind(") = \"");
  if (equals == std::string_view::npos || !line.ends_with('"')) return std::nullopt;
  return BashCall{"candidate" + std::string(line.substr(0, equals)), std::string(line.substr(equals + 4))};
}

}  // namespace

std::optional<BashTests> parse_bash_tests(std::string_view tests) {
  BashTests out;
  if (!take(tests, "}\n\ncandidate() {\n    ")) return std::nullopt;
  const std::size_t name = tests.find(" \"$@\"\n}\n\nset -e\nrun_test() {\n");
  if (name == std::string_view::npos) return std::nullopt;
  out.function = tests.substr(0, name);
  tests.remove_prefix(tests.find("run_test() {\n") + 13);
  const std::size_t end = tests.rfind("\n}\n\nrun_test");
  if (end == std::string_view::npos) return std::nullopt;
  tests = tests.substr(0, end + 1);
  while (!tests.empty()) {
    const std::size_t newline = tests.find('\n');
    auto call = parse_call(tests.substr(0, newline));
    if (!call) return std::nullopt;
    out.calls.push_back(*std::move(call));
    tests.remove_prefix(newline + 1);
  }
  if (out.calls.empty()) return std::nullopt;
  return out;
}

std::optional<std::string> unquote_bash(std::string_view word) {
  if (word.size() < 2 || !word.starts_with('"') || !word.ends_with('"')) return std::nullopt;
  word = word.substr(1, word.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '$' || c == '`' || c == '"') return std::nullopt;
    if (c == '\\' && i + 1 < word.size()) {
      const char next = word[i + 1];
      if (next == '\n') {
        ++i;
        continue;
      }
      if (next == '$' || next == '`' || next == '"' || next == '\\') {
        out += next;
        ++i;
        continue;
      }
    }
    out += c;
  }
  return out;
}

}  // namespace fixpoint::evals::detail
