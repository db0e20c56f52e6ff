#include <algorithm>
#include <cctype>

#include "agent/detail/fences.h"
#include "agent/detail/utf8.h"
#include "agent/task.h"

namespace fixpoint::agent {
namespace {

using detail::trimmed;

enum class Section { statement, tests, hidden_tests, setup, files };

/// The section that a heading opens; nothing where the heading is part of the statement.
std::optional<Section> section_of(std::string_view line) {
  if (!line.starts_with("#")) return std::nullopt;
  std::string name(trimmed(line.substr(line.find_first_not_of('#') == std::string_view::npos ? line.size()
                                                                                                : line.find_first_not_of('#'))));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "tests" || name == "visible tests") return Section::tests;
  if (name == "hidden tests") return Section::hidden_tests;
  if (name == "setup") return Section::setup;
  if (name == "files" || name == "context") return Section::files;
  return std::nullopt;
}

/// Title or another heading: ends a special section.
bool is_other_heading(std::string_view line) {
  const std::size_t marks = line.find_first_not_of('#');
  return marks != 0 && marks != std::string_view::npos && marks <= 6 && line[marks] == ' ' && !section_of(line);
}

/// "Language: C++" and "Function: f" as lines of their own.
std::optional<std::string_view> setting(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || !line.substr(name.size()).starts_with(":")) return std::nullopt;
  std::string_view value = trimmed(line.substr(name.size() + 1));
  while (value.starts_with('`')) value.remove_prefix(1);
  while (value.ends_with('`')) value.remove_suffix(1);
  return value;
}

struct Parts {
  std::string text[5];  // by Section
};

Parts split_sections(std::string_view text, Task& task) {
  Parts parts;
  Section section = Section::statement;
  bool fenced = false;
  for (const std::string_view line : detail::split_lines(text)) {
    const std::string_view start = trimmed(line);
    if (start.starts_with("```") || start.starts_with("~~~")) {
      fenced = !fenced;
    } else if (!fenced) {
      if (const auto opened = section_of(start)) {
        section = *opened;
        continue;
      }
      if (is_other_heading(start)) section = Section::statement;
      if (section == Section::statement) {
        if (const auto language = setting(line, "Language")) {
          task.language = canonical_language(*language);
          continue;
        }
        if (const auto function = setting(line, "Function")) {
          task.entry_point = *function;
          continue;
        }
      }
    }
    parts.text[static_cast<std::size_t>(section)] += line;
    parts.text[static_cast<std::size_t>(section)] += '\n';
  }
  return parts;
}

/// "file=NAME" or "title=NAME" in a fence's info.
std::string file_in(const detail::Fence& fence) {
  for (const std::string_view key : {"file=", "title="}) {
    const std::size_t at = fence.info.find(key);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(fence.info).substr(at + key.size());
    std::string name(rest.substr(0, rest.find_first_of(" \t")));
    std::erase(name, '"');
    return name;
  }
  return {};
}

tl::expected<std::vector<Test>, TaskError> read_tests(std::string_view text, Task& task, const std::string& where) {
  std::vector<Test> tests;
  std::optional<std::string> input;
  for (const detail::Fence& fence : detail::find_fences(text)) {
    std::string kind = fence_language(fence);
    if (kind == "test" || kind == "tests") kind.clear();
    if (kind == "stdin" || kind == "input") {
      if (input) return tl::unexpected(TaskError{where, "an input without an output"});
      input = fence.content;
    } else if (kind == "stdout" || kind == "output") {
      tests.push_back({StdioCase{input.value_or(""), fence.content}});
      input.reset();
    } else {
      auto more = parse_tests(fence.content, file_in(fence), kind.empty() ? task.language : canonical_language(kind), &task.setup);
      if (!more) return tl::unexpected(TaskError{where, more.error().message()});
      std::move(more->begin(), more->end(), std::back_inserter(tests));
    }
  }
  if (input) return tl::unexpected(TaskError{where, "an input without an output"});
  if (tests.empty() && !trimmed(text).empty()) {
    // Plain lines, or a list of `assert …` items.
    std::string plain;
    for (std::string_view line : detail::split_lines(text)) {
      line = trimmed(line);
      if (line.starts_with("- ") || line.starts_with("* ")) line = trimmed(line.substr(2));
      while (line.starts_with('`')) line.remove_prefix(1);
      while (line.ends_with('`')) line.remove_suffix(1);
      plain += std::string(line) + "\n";
    }
    return parse_tests(plain, "", task.language, &task.setup);
  }
  return tests;
}

/// "python tests" or "tests" in a fence's info.
bool says_tests(const detail::Fence& fence) {
  std::string_view info = fence.info;
  while (!info.empty()) {
    const std::size_t end = std::min(info.find_first_of(" \t{},"), info.size());
    if (info.substr(0, end) == "tests" || info.substr(0, end) == "test") return true;
    info.remove_prefix(std::min(end + 1, info.size()));
  }
  return false;
}

/// Nothing but assertions, each a line.
bool holds_assertions(const detail::Fence& fence) {
  bool any = false;
  for (const std::string_view line : detail::split_lines(fence.content)) {
    const std::string_view code = trimmed(line);
    if (code.empty() || code.starts_with("#")) continue;
    if (!code.starts_with("assert ") && !code.starts_with("assert(")) return false;
    any = true;
  }
  return any;
}

/// Takes the blocks that hold tests out of the statement; where a section has tests, only those that say that they do.
std::string take_tests(std::string& statement, bool has_section) {
  std::string tests;
  const std::vector<detail::Fence> fences = detail::find_fences(statement);
  for (auto fence = fences.rbegin(); fence != fences.rend(); ++fence) {
    const bool asserts = !has_section && fence->closed && holds_assertions(*fence);
    if (!asserts && !says_tests(*fence)) continue;
    tests.insert(0, statement.substr(fence->begin, fence->end - fence->begin) + "\n");
    statement.erase(fence->begin, fence->end - fence->begin);
  }
  return tests;
}

void read_files(std::string_view text, Task& task) {
  const std::vector<detail::Fence> fences = detail::find_fences(text);
  std::size_t behind = 0;
  for (const detail::Fence& fence : fences) {
    std::string name = file_in(fence);
    if (name.empty()) {  // the last `name` before the block
      const std::string_view before = text.substr(behind, fence.begin - behind);
      const std::size_t close = before.rfind('`');
      const std::size_t open = close == std::string_view::npos || close == 0 ? close : before.rfind('`', close - 1);
      if (open != std::string_view::npos && open < close) name = before.substr(open + 1, close - open - 1);
    }
    behind = fence.end;
    if (name.empty()) name = "file" + std::to_string(task.context.size() + 1);
    task.context.push_back({std::move(name), fence.content});
  }
}

/// The function that assertions call: "assert f(1) == 2" names f.
std::string called_function(const std::vector<Test>& tests) {
  for (const Test& test : tests) {
    const auto* assertion = std::get_if<Assertion>(&test.body);
    if (assertion == nullptr) continue;
    std::string_view code = trimmed(assertion->code);
    if (!code.starts_with("assert")) continue;
    code = trimmed(code.substr(6));
    while (code.starts_with('(')) code = trimmed(code.substr(1));
    if (code.starts_with("not ")) code = trimmed(code.substr(4));
    std::size_t end = 0;
    while (end < code.size() && (std::isalnum(static_cast<unsigned char>(code[end])) != 0 || code[end] == '_')) ++end;
    if (end > 0 && end < code.size() && code[end] == '(') return std::string(code.substr(0, end));
  }
  return {};
}

}  // namespace

tl::expected<Task, TaskError> parse_task_markdown(std::string_view raw) {
  if (raw.starts_with("\xEF\xBB\xBF")) raw.remove_prefix(3);
  Task task;
  Parts parts = split_sections(detail::unix_lines(detail::to_valid_utf8(raw)), task);
  std::string& tests = parts.text[static_cast<std::size_t>(Section::tests)];
  tests += take_tests(parts.text[static_cast<std::size_t>(Section::statement)], !trimmed(tests).empty());
  const auto text = [&parts](Section section) { return std::string_view(parts.text[static_cast<std::size_t>(section)]); };
  task.statement = trimmed(text(Section::statement));
  const std::vector<detail::Fence> setup = detail::find_fences(text(Section::setup));
  task.setup = setup.empty() ? std::string(trimmed(text(Section::setup))) : setup.front().content;
  auto visible = read_tests(text(Section::tests), task, "Tests");
  if (!visible) return tl::unexpected(visible.error());
  task.visible = *std::move(visible);
  auto hidden = read_tests(text(Section::hidden_tests), task, "Hidden tests");
  if (!hidden) return tl::unexpected(hidden.error());
  task.hidden = *std::move(hidden);
  read_files(text(Section::files), task);
  if (task.visible.empty() && task.language == "python") task.visible = find_doctests(task.statement);
  if (task.entry_point.empty()) task.entry_point = called_function(task.visible);
  if (task.entry_point.empty()) task.entry_point = called_function(task.hidden);
  if (auto error = validate(task)) return tl::unexpected(*std::move(error));
  return task;
}

}  // namespace fixpoint::agent
