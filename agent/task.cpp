#include "agent/task.h"

#include <algorithm>
#include <cctype>

#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

constexpr std::size_t kMaxStatementBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxTests = 20'000;
constexpr std::size_t kMaxFiles = 64;

struct LanguageName {
  std::string_view name;
  std::string_view title;
  std::string_view extensions;  // each with a blank after it
  std::string_view aliases;
};

constexpr LanguageName kLanguages[] = {
    {"python", "Python", "py ", "py python3 "},
    {"cpp", "C++", "cpp cc cxx hpp ", "c++ cxx cc "},
    {"c", "C", "c h ", ""},
    {"javascript", "JavaScript", "js mjs cjs ", "js node nodejs "},
    {"bash", "Bash", "sh bash ", "sh shell "},
    {"java", "Java", "java ", ""},
    {"go", "Go", "go ", "golang "},
    {"rust", "Rust", "rs ", "rs "},
};

bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(end + 1);
  }
  return false;
}

bool safe_path(std::string_view path) {
  if (path.empty() || path.size() > 200 || path.front() == '/') return false;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == ".." || part.front() == '-') return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

std::optional<TaskError> validate_test(const Test& test, const Task& task, const std::string& where) {
  if (const auto* it = std::get_if<Assertion>(&test.body)) {
    if (detail::trimmed(it->code).empty()) return TaskError{where, "an empty assertion"};
  } else if (const auto* check = std::get_if<CheckFunction>(&test.body)) {
    if (check->code.find("check") == std::string::npos) return TaskError{where, "does not define check(candidate)"};
    if (task.entry_point.empty()) return TaskError{"entry_point", "missing: " + where + " calls check() with it"};
  } else if (const auto* file = std::get_if<TestFile>(&test.body)) {
    if (!safe_path(file->name)) return TaskError{where + ".file", "not a relative path: " + file->name};
    if (detail::trimmed(file->content).empty()) return TaskError{where, "an empty test file"};
  }
  return std::nullopt;
}

std::optional<TaskError> validate_tests(const std::vector<Test>& tests, const Task& task, std::string_view field) {
  if (tests.size() > kMaxTests) return TaskError{std::string(field), "more than " + std::to_string(kMaxTests) + " tests"};
  for (std::size_t i = 0; i < tests.size(); ++i) {
    auto error = validate_test(tests[i], task, std::string(field) + "[" + std::to_string(i) + "]");
    if (error) return error;
  }
  return std::nullopt;
}

}  // namespace

std::string_view language_of_file(std::string_view file_name) {
  const std::size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return {};
  for (const LanguageName& language : kLanguages) {
    if (lists(language.extensions, file_name.substr(dot + 1))) return language.name;
  }
  return {};
}

std::string canonical_language(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const LanguageName& language : kLanguages) {
    if (language.name == lower || lists(language.aliases, lower)) return std::string(language.name);
  }
  return lower;
}

std::string language_title(std::string_view name) {
  for (const LanguageName& language : kLanguages) {
    if (language.name == name) return std::string(language.title);
  }
  return std::string(name);
}

std::string title(const Task& task, std::size_t max_bytes) {
  std::string_view text = detail::trimmed(task.id.empty() ? std::string_view(task.statement) : task.id);
  while (text.starts_with('#')) text.remove_prefix(1);
  text = detail::trimmed(text);
  text = detail::trimmed(text.substr(0, text.find('\n')));
  if (text.size() <= max_bytes) return std::string(text);
  return std::string(text.substr(0, detail::floor_character(text, max_bytes - 3))) + "...";
}

std::optional<TaskError> validate(const Task& task) {
  if (detail::trimmed(task.statement).empty()) return TaskError{"statement", "empty"};
  if (task.statement.size() > kMaxStatementBytes) return TaskError{"statement", "longer than 1 MiB"};
  if (task.language.empty()) return TaskError{"language", "empty"};
  if (task.context.size() > kMaxFiles) return TaskError{"files", "more than " + std::to_string(kMaxFiles)};
  for (const std::string_view text : {std::string_view(task.statement), std::string_view(task.setup), std::string_view(task.id)}) {
    if (!detail::is_valid_utf8(text)) return TaskError{"statement", "not valid UTF-8"};
  }
  for (std::size_t i = 0; i < task.context.size(); ++i) {
    const std::string where = "files[" + std::to_string(i) + "]";
    if (!safe_path(task.context[i].path)) return TaskError{where + ".path", "not a relative path: " + task.context[i].path};
    if (task.context[i].content.size() > kMaxFileBytes) return TaskError{where + ".content", "longer than 4 MiB"};
  }
  if (auto error = validate_tests(task.visible, task, "tests")) return error;
  return validate_tests(task.hidden, task, "hidden_tests");
}

tl::expected<Task, TaskError> parse_task(std::string_view text, std::string_view file_name) {
  const std::string_view start = detail::trimmed(text);
  if (file_name.ends_with(".json") || (!file_name.ends_with(".md") && start.starts_with("{"))) return parse_task_json(text);
  const std::string_view language = language_of_file(file_name);
  if (!language.empty()) return parse_task_source(text, language);
  return parse_task_markdown(text);
}

}  // namespace fixpoint::agent
