#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/task.h"

namespace fixpoint::server {

/// A file that came with a prompt, embedded or read through the client.
struct PromptFile {
  std::string path;  ///< absolute, or what the client calls it
  std::string text;
};

/// What a person asked, before it is a task.
struct PromptText {
  std::string message;            ///< all text blocks
  std::vector<PromptFile> files;  ///< in the order of the prompt; tests that lay next to them behind
  std::string language, function, file;  ///< said by the client; empty: found out
};

struct PromptTask {
  agent::Task task;
  std::string file;    ///< the edited file; empty where there is none
  std::string before;  ///< its text as it was
};

/// The task of a prompt. A file alone may be one (JSON, Markdown, a source file with a docstring and no body); else the
/// message is the statement. Tests come from a "Tests" section, from files named like tests, from fenced blocks, from
/// assertions and examples in the message, in this order. The error is a sentence for people.
[[nodiscard]] tl::expected<PromptTask, std::string> make_task(const PromptText& prompt);

/// "test_a.py", "a.test.js", "a_test.go", …
[[nodiscard]] bool is_test_file(std::string_view path);

/// Where the tests of a source file usually lie: beside it and in "tests".
[[nodiscard]] std::vector<std::string> test_paths(std::string_view path);

/// "solution.py", "solution.cpp": the name of a program that has none.
[[nodiscard]] std::string default_file_name(std::string_view language);

/// Behind the last slash.
[[nodiscard]] std::string_view file_name(std::string_view path);

}  // namespace fixpoint::server
