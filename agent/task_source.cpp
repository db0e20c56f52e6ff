#include <algorithm>
#include <cctype>
#include <utility>

#include "agent/detail/fences.h"
#include "agent/detail/utf8.h"
#include "agent/extract.h"
#include "agent/task.h"

namespace fixpoint::agent {
namespace {

using detail::split_lines;
using detail::trimmed;

/// The name in "def f(…" or "async def f(…"; empty where the line defines no function.
std::string_view defined_function(std::string_view line) {
  if (line.starts_with("async ")) line = trimmed(line.substr(6));
  if (!line.starts_with("def ")) return {};
  line = trimmed(line.substr(4));
  std::size_t end = 0;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_')) ++end;
  return line.substr(0, end);
}

/// The last function of the top level: the one that is to be written (helpers stand before it).
std::string last_function(std::string_view source) {
  std::string name;
  for (const std::string_view line : split_lines(source)) {
    const std::string_view found = defined_function(line);
    if (!found.empty()) name = found;
  }
  return name;
}

/// The last name before "(" on a line that looks like a function's head, in languages with braces.
std::string last_signature(std::string_view source) {
  std::string name;
  for (const std::string_view raw : split_lines(source)) {
    const std::string_view line = trimmed(raw);
    const std::size_t open = line.find('(');
    if (open == std::string_view::npos || open == 0 || line.starts_with("//") || line.starts_with("#") || line.starts_with("*")) continue;
    if (!line.ends_with("{") && !line.ends_with(")") && !line.ends_with(";")) continue;
    std::size_t begin = open;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_')) --begin;
    const std::string_view word = line.substr(begin, open - begin);
    static constexpr std::string_view kKeywords[] = {"if", "for", "while", "switch", "return", "function", "catch", ""};
    if (std::find(std::begin(kKeywords), std::end(kKeywords), word) == std::end(kKeywords)) name = word;
  }
  return name;
}

bool defines_check(std::string_view text) { return text.find("def check(") != std::string_view::npos; }

/// The names that an example's statement makes, for the examples behind it: "xs = [1]", "a, b = f()", "def g():".
/// What an import names is most often the program itself.
void add_bound_names(std::string_view statement, std::vector<std::string>& names) {
  std::string_view targets;
  if (statement.starts_with("def ") || statement.starts_with("class ")) {
    targets = trimmed(statement.substr(statement.find(' ')));
    targets = targets.substr(0, targets.find_first_of("(:"));
  } else {
    const std::size_t equals = statement.find('=');
    if (equals == std::string_view::npos || statement.substr(equals).starts_with("==") || statement.find('(') < equals) return;
    targets = statement.substr(0, equals);
  }
  std::string name;
  for (const char c : std::string(targets) + ",") {
    if (detail::is_identifier_character(c)) {
      name += c;
    } else if (!name.empty()) {
      names.push_back(std::exchange(name, {}));
    }
  }
}

bool is_test_file(std::string_view text, std::string_view language) {
  // In C and C++ assertions alone are statements, which stand in no file of their own.
  if (language == "c" || language == "cpp") return text.find("main") != std::string_view::npos || text.find("assert") == std::string_view::npos;
  if (language != "python") return true;
  for (const std::string_view line : split_lines(text)) {
    if (line.starts_with("class ") || line.starts_with("def test") || line.starts_with("import unittest") ||
        line.starts_with("import pytest")) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Test> find_doctests(std::string_view statement) {
  std::vector<Test> tests;
  const std::vector<std::string_view> lines = split_lines(statement);
  std::vector<std::string> bound;  // by examples, and so unknown to a test that stands alone
  for (const std::string_view raw : lines) {
    if (trimmed(raw).starts_with(">>> ")) add_bound_names(trimmed(trimmed(raw).substr(4)), bound);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = trimmed(lines[i]);
    if (!line.starts_with(">>> ")) continue;
    std::string expression(trimmed(line.substr(4)));
    while (i + 1 < lines.size() && trimmed(lines[i + 1]).starts_with("... ")) expression += "\n" + std::string(trimmed(lines[++i]).substr(4));
    if (i + 1 >= lines.size()) break;
    const std::string_view want = trimmed(lines[i + 1]);
    const bool one_line = i + 2 >= lines.size() || trimmed(lines[i + 2]).empty() || trimmed(lines[i + 2]).starts_with(">>>") ||
                          trimmed(lines[i + 2]).starts_with("\"\"\"") || trimmed(lines[i + 2]).starts_with("'''") ||
                          trimmed(lines[i + 2]).starts_with("```");
    // Statements, tracebacks and printed text are examples, not values to compare.
    if (want.empty() || want.starts_with(">>>") || want.starts_with("Traceback") || want.starts_with("```") ||
        want.starts_with("\"\"\"") || want.starts_with("'''") || !one_line ||
        expression.find('(') == std::string::npos || expression.starts_with("import ") || expression.starts_with("print(") ||
        expression.starts_with("for ")) {
      continue;
    }
    // "x = f(1)" has no value; "f(a=1)" has one.
    const std::size_t equals = expression.find('=');
    if (equals != std::string::npos && equals < expression.find('(')) continue;
    if (std::any_of(bound.begin(), bound.end(), [&](const std::string& name) { return detail::has_word(expression, name); })) continue;
    const bool address = want.starts_with("<");
    tests.push_back({Assertion{address ? "assert repr(" + expression + ") == '" + std::string(want) + "'"
                                       : "assert " + expression + " == " + std::string(want)},
                     TestOrigin::doctest});
    ++i;
  }
  return tests;
}

tl::expected<std::vector<Test>, TaskError> parse_tests(std::string_view raw, std::string_view file_name,
                                                       std::string_view language, std::string* setup) {
  const std::string text = detail::unix_lines(detail::to_valid_utf8(raw));
  if (trimmed(text).empty()) return tl::unexpected(TaskError{std::string(file_name), "holds no test"});
  if (language == "python" && defines_check(text)) return std::vector<Test>{{CheckFunction{text}}};
  if (is_test_file(text, language)) {
    std::string name(file_name.substr(file_name.rfind('/') == std::string_view::npos ? 0 : file_name.rfind('/') + 1));
    if (name.empty()) name = language == "python" ? "test_solution.py" : "tests";
    return std::vector<Test>{{TestFile{std::move(name), text}}};
  }
  constexpr std::size_t kMaxAssertions = 20'000;
  std::vector<Test> tests;
  for (std::string& code : extract_assertions(text, kMaxAssertions)) tests.push_back({Assertion{std::move(code)}});
  if (tests.empty()) return tl::unexpected(TaskError{std::string(file_name), "holds no assert statement, check() function or test class"});
  // What stands before the first assertion prepares them.
  const std::size_t first = std::min(text.find("\nassert"), text.starts_with("assert") ? 0 : std::string::npos);
  if (setup != nullptr && first != std::string::npos && first > 0) {
    const std::string_view before = trimmed(std::string_view(text).substr(0, first));
    if (!before.empty()) *setup += (setup->empty() ? "" : "\n") + std::string(before);
  }
  return tests;
}

tl::expected<Task, TaskError> parse_task_source(std::string_view raw, std::string_view language) {
  const std::string source = detail::unix_lines(detail::to_valid_utf8(raw));
  if (trimmed(source).empty()) return tl::unexpected(TaskError{"", "an empty file"});
  Task task{.language = std::string(language)};
  task.entry_point = language == "python" ? last_function(source) : last_signature(source);
  if (language == "python" && task.entry_point.empty()) {
    return tl::unexpected(TaskError{"", "no function at the top level: there is nothing to complete"});
  }
  task.statement = task.entry_point.empty() ? "Complete this program." : "Complete `" + task.entry_point + "`.";
  task.statement += "\n```" + std::string(language) + "\n" + source + (source.ends_with('\n') ? "" : "\n") + "```";
  if (language == "python") task.visible = find_doctests(source);
  if (auto error = validate(task)) return tl::unexpected(*std::move(error));
  return task;
}

}  // namespace fixpoint::agent
