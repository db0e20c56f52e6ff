#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace fixpoint::agent {

/// One statement that raises or aborts when the program is wrong: "assert f(1) == 2".
struct Assertion {
  std::string code;
  bool operator==(const Assertion&) const = default;
};

/// The whole program is run with `input` on stdin; its stdout must be `output`.
struct StdioCase {
  std::string input;
  std::string output;
  bool operator==(const StdioCase&) const = default;
};

/// Code that defines check(candidate); it is called with the task's entry point.
struct CheckFunction {
  std::string code;
  bool operator==(const CheckFunction&) const = default;
};

/// A file in the language's own test style, run beside the program.
struct TestFile {
  std::string name;
  std::string content;
  bool operator==(const TestFile&) const = default;
};

using TestBody = std::variant<Assertion, StdioCase, CheckFunction, TestFile>;

/// Who wrote a test. The statement's doctests are already in the prompt; the model's own may be wrong.
enum class TestOrigin : std::uint8_t { given, doctest, model };

struct Test {
  TestBody body;
  TestOrigin origin = TestOrigin::given;
  bool operator==(const Test&) const = default;
};

struct ContextFile {
  std::string path;  ///< relative, without ".."
  std::string content;
  bool operator==(const ContextFile&) const = default;
};

/// What is asked. A plain value; valid UTF-8 throughout.
struct Task {
  std::string id;         ///< free text for people and reports; may be empty
  std::string statement;  ///< Markdown, shown to the model as it is
  std::string language = "python";
  std::string entry_point;           ///< the function that tests call; empty where the program is run as a whole
  std::string setup;                 ///< code put before assertions (imports, fixtures)
  std::vector<ContextFile> context;  ///< shown to the model
  std::vector<Test> visible;         ///< decide the rounds and may be quoted to the model
  std::vector<Test> hidden;          ///< only score the end result
  int shown_tests = 3;               ///< how many given tests the first prompt quotes
  bool operator==(const Task&) const = default;
};

/// Why a text is not a task; `where` names the field or the line.
struct TaskError {
  std::string where;
  std::string detail;
  [[nodiscard]] std::string message() const { return where.empty() ? detail : where + ": " + detail; }
};

/// The format is told from the name (.json, .md, a source file) or, where it says nothing, from the text.
[[nodiscard]] tl::expected<Task, TaskError> parse_task(std::string_view text, std::string_view file_name);

[[nodiscard]] tl::expected<Task, TaskError> parse_task_json(std::string_view text);
[[nodiscard]] std::string to_json(const Task& task);

/// Headings "Tests", "Hidden tests", "Setup" and "Files" are read; everything else is the statement (docs/agent.md).
[[nodiscard]] tl::expected<Task, TaskError> parse_task_markdown(std::string_view text);

/// A source file whose last function has a docstring (or a leading comment) and no body yet.
[[nodiscard]] tl::expected<Task, TaskError> parse_task_source(std::string_view text, std::string_view language);

/// Tests in a file given beside the task: assertions, a check() function, or a test file in the language's own style.
[[nodiscard]] tl::expected<std::vector<Test>, TaskError> parse_tests(std::string_view text, std::string_view file_name,
                                                                     std::string_view language, std::string* setup);

/// Examples in the style of an interactive Python session (">>> f(1)" and the line after it), as assertions. An example that
/// uses a name which another one assigns is none: it does not stand alone.
[[nodiscard]] std::vector<Test> find_doctests(std::string_view statement);

/// What must hold of every task: a statement, known test forms, relative paths, bounded sizes.
[[nodiscard]] std::optional<TaskError> validate(const Task& task);

/// The language a file name's extension stands for ("python", "cpp", …); empty if unknown.
[[nodiscard]] std::string_view language_of_file(std::string_view file_name);
/// The language under any of its usual names ("py", "C++", "js"), or the name itself in lower case.
[[nodiscard]] std::string canonical_language(std::string_view name);
/// "Python", "C++": for prompts and people.
[[nodiscard]] std::string language_title(std::string_view language);

/// One line for lists: the id, or the statement's first line, at most `max_bytes`.
[[nodiscard]] std::string title(const Task& task, std::size_t max_bytes = 72);

}  // namespace fixpoint::agent
