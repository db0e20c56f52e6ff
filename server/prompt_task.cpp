#include "server/prompt_task.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/extract.h"

namespace fixpoint::server {
namespace {

using agent::Task;
using agent::Test;

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kExtensions{{{"python", "py"},
                                                                                    {"cpp", "cpp"},
                                                                                    {"c", "c"},
                                                                                    {"javascript", "js"},
                                                                                    {"bash", "sh"},
                                                                                    {"java", "java"},
                                                                                    {"go", "go"},
                                                                                    {"rust", "rs"}}};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

struct Name {
  std::string folder, stem, extension;  // "/a/", "b", "py"
};
Name split(std::string_view path) {
  const std::string_view name = file_name(path);
  Name parts{.folder = std::string(path.substr(0, path.size() - name.size()))};
  const std::size_t dot = name.rfind('.');
  parts.stem = name.substr(0, dot);
  if (dot != std::string_view::npos) parts.extension = name.substr(dot + 1);
  return parts;
}

/// Fenced blocks of a message: what the info line says, and what is between.
std::vector<std::pair<std::string, std::string>> fenced_blocks(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> blocks;
  bool inside = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).starts_with("```")) {
      inside = !inside;
      if (inside) blocks.emplace_back(trimmed(trimmed(line).substr(3)), "");
    } else if (inside) {
      blocks.back().second += std::string(line) + "\n";
    }
  }
  return blocks;
}

/// A block of tests rather than of code that is shown: assertions, or a framework's names.
bool looks_like_tests(std::string_view code) {
  const bool defines_program = code.find("def ") != std::string_view::npos && code.find("def test") == std::string_view::npos &&
                               code.find("def check") == std::string_view::npos;
  if (defines_program) return false;
  for (const std::string_view mark : {"assert", "def test", "def check", "console.assert", "TEST(", "#[test]", "func Test"}) {
    if (code.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

/// The function that assertions call, as the Markdown reader finds it.
std::string called_function(const std::vector<Test>& tests) {
  std::string text = "x\n\n# Tests\n\n";
  for (const Test& test : tests) {
    if (const auto* assertion = std::get_if<agent::Assertion>(&test.body)) {
      text += assertion->code + "\n";
      break;
    }
  }
  const auto task = agent::parse_task_markdown(text);
  return task ? task->entry_point : std::string();
}

/// Ends in a function without a body (Python, where it can be told).
bool is_stub(std::string_view source) {
  source = trimmed(source);
  for (const std::string_view end : {"\"\"\"", "'''", "pass", "...", "raise NotImplementedError", "raise NotImplementedError()"}) {
    if (source.ends_with(end)) return true;
  }
  return false;
}

bool is_document(std::string_view path) { return path.ends_with(".md") || path.ends_with(".json"); }

class Maker {
 public:
  explicit Maker(const PromptText& prompt) : prompt_(prompt), message_(trimmed(prompt.message)) {
    for (const PromptFile& file : prompt.files) {
      if (is_test_file(file.path) && file.path != prompt.file) {
        tests_.push_back(&file);
      } else {
        others_.push_back(&file);
      }
    }
  }

  tl::expected<PromptTask, std::string> make() {
    choose_edited();
    if (auto error = read_statement()) return tl::unexpected(*error);
    if (!prompt_.language.empty()) task_.language = agent::canonical_language(prompt_.language);
    if (auto error = read_tests()) return tl::unexpected(*error);
    if (!prompt_.function.empty()) task_.entry_point = prompt_.function;
    if (task_.entry_point.empty()) task_.entry_point = called_function(task_.visible);
    if (const auto error = agent::validate(task_)) return tl::unexpected(error->message());
    PromptTask result{.task = std::move(task_), .file = prompt_.file};
    if (edited_ != nullptr) {
      result.file = edited_->path;
      result.before = edited_->text;
    }
    return result;
  }

 private:
  void choose_edited() {
    for (const PromptFile* file : others_) {
      const std::string_view language = agent::language_of_file(file->path);
      const bool named = !prompt_.file.empty() && file->path == prompt_.file;
      const bool usable = !language.empty() && (prompt_.language.empty() || agent::canonical_language(prompt_.language) == language);
      if (named || (usable && prompt_.file.empty())) {
        edited_ = file;
        return;
      }
    }
  }

  std::optional<std::string> read_statement() {
    if (message_.starts_with('{')) return take(agent::parse_task_json(message_), "the message");
    const PromptFile* document = nullptr;
    for (const PromptFile* file : others_) {
      if (document == nullptr && is_document(file->path)) document = file;
    }
    if (document != nullptr && (message_.empty() || others_.size() == 1)) {
      if (auto task = agent::parse_task(document->text, file_name(document->path)); task || message_.empty()) {
        if (auto error = take(std::move(task), document->path)) return error;
        if (!message_.empty()) task_.statement = std::string(message_) + "\n\n" + task_.statement;
        add_context(document);
        return std::nullopt;
      }
    }
    if (edited_ != nullptr) {
      // A file that ends in a function without a body is the task; a finished one is what the message speaks of.
      auto task = agent::parse_task_source(edited_->text, agent::language_of_file(edited_->path));
      if (message_.empty() || (task && is_stub(edited_->text))) {
        if (auto error = take(std::move(task), edited_->path)) return error;
        if (!message_.empty()) task_.statement = std::string(message_) + "\n\n" + task_.statement;
        add_context(edited_);
        return std::nullopt;
      }
    }
    if (message_.empty()) return "the prompt has no text";
    if (auto error = take(agent::parse_task_markdown(message_), "the message")) return error;
    if (edited_ != nullptr && message_.find("Language:") == std::string_view::npos) task_.language = agent::language_of_file(edited_->path);
    add_context(nullptr);
    return std::nullopt;
  }

  std::optional<std::string> take(tl::expected<Task, agent::TaskError> task, std::string_view where) {
    if (!task) return std::string(where) + ": " + task.error().message();
    task_ = *std::move(task);
    return std::nullopt;
  }

  void add_context(const PromptFile* except) {
    for (const PromptFile* file : others_) {
      if (file != except) task_.context.push_back({std::string(file_name(file->path)), file->text});
    }
  }

  std::optional<std::string> read_tests() {
    if (!task_.visible.empty() && task_.visible.front().origin == agent::TestOrigin::given) return std::nullopt;
    std::vector<Test> found;
    for (const PromptFile* file : tests_) {
      auto tests = agent::parse_tests(file->text, file_name(file->path), task_.language, &task_.setup);
      if (!tests) return file->path + ": " + tests.error().message();
      std::move(tests->begin(), tests->end(), std::back_inserter(found));
    }
    if (found.empty()) {
      for (const auto& [info, code] : fenced_blocks(message_)) {
        const std::string language = info.empty() ? task_.language : agent::canonical_language(info.substr(0, info.find(' ')));
        if (language != task_.language || !looks_like_tests(code)) continue;
        auto tests = agent::parse_tests(code, "", task_.language, &task_.setup);
        if (tests) std::move(tests->begin(), tests->end(), std::back_inserter(found));
      }
    }
    if (found.empty() && task_.language == "python") {
      for (std::string& code : agent::extract_assertions(message_, 1'000)) found.push_back({agent::Assertion{std::move(code)}});
    }
    if (!found.empty()) task_.visible = std::move(found);
    return std::nullopt;
  }

  const PromptText& prompt_;
  std::string_view message_;
  std::vector<const PromptFile*> tests_, others_;
  const PromptFile* edited_ = nullptr;
  Task task_;
};

}  // namespace

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

bool is_test_file(std::string_view path) {
  const Name name = split(path);
  if (agent::language_of_file(file_name(path)).empty()) return false;
  return name.stem.starts_with("test_") || name.stem.ends_with("_test") || name.stem.ends_with(".test") || name.stem.ends_with(".spec") ||
         name.stem == "tests";
}

std::vector<std::string> test_paths(std::string_view path) {
  const Name name = split(path);
  const std::string_view language = agent::language_of_file(file_name(path));
  if (language.empty() || is_test_file(path)) return {};
  std::vector<std::string> names;
  if (language == "python") {
    names = {"test_" + name.stem, name.stem + "_test"};
  } else if (language == "javascript") {
    names = {name.stem + ".test", name.stem + ".spec"};
  } else {
    names = {name.stem + "_test", "test_" + name.stem};
  }
  std::vector<std::string> paths;
  for (const std::string_view folder : {"", "tests/"}) {
    for (const std::string& stem : names) paths.push_back(name.folder + std::string(folder) + stem + "." + name.extension);
  }
  return paths;
}

std::string default_file_name(std::string_view language) {
  for (const auto& [name, extension] : kExtensions) {
    if (name == language) return "solution." + std::string(extension);
  }
  return "solution.txt";
}

tl::expected<PromptTask, std::string> make_task(const PromptText& prompt) { return Maker(prompt).make(); }

}  // namespace fixpoint::server
