#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "agent/journal.h"
#include "agent/loop.h"
#include "agent/scripted_generator.h"

namespace fixpoint::agent {

/// A program in a fence, as models write it.
inline std::string fenced(const std::string& program, const std::string& words = "") {
  return words + (words.empty() ? "" : "\n") + "```python\n" + program + "```";
}
inline std::string program(int value) { return "def f(x):\n    return " + std::to_string(value) + "\n"; }

inline Task make_task() {
  Task task{.statement = "Write `f(x)`. Give back seven.", .entry_point = "f"};
  task.visible = {{Assertion{"assert f(1) == 7"}}, {Assertion{"assert f(2) == 7"}}};
  return task;
}

/// Writes what a function of the request says. A pure function makes resumed loops end like undisturbed ones.
class FunctionGenerator : public Generator {
 public:
  using Function = std::function<tl::expected<Generation, GenerateError>(const GenerateRequest&, std::stop_token)>;
  explicit FunctionGenerator(Function function) : function_(std::move(function)) {}

  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text,
                                                   std::stop_token stop) override {
    {
      const std::scoped_lock lock(mutex_);
      requests_.push_back(request);
    }
    auto result = function_(request, stop);
    if (result && on_text) on_text(result->text);
    return result;
  }
  std::string name() const override { return "function"; }
  std::vector<GenerateRequest> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  Function function_;
  mutable std::mutex mutex_;
  std::vector<GenerateRequest> requests_;
};

inline Generation answer(std::string text, std::int64_t tokens = 10) {
  return {.text = std::move(text), .usage = {.prompt_tokens = 100, .completion_tokens = tokens}, .elapsed = std::chrono::milliseconds(5)};
}

/// How many answers stand in a prompt: the depth of the conversation.
inline int depth_of(const GenerateRequest& request) {
  int depth = 0;
  for (const Message& message : request.messages) depth += message.role == Role::assistant ? 1 : 0;
  return depth;
}

/// Judges by the number that the program returns: 7 passes, 6 passes the first test only, "syntax" does not compile.
class NumberChecker : public Checker {
 public:
  std::optional<std::string> refusal(const std::string& language) const override {
    return language == "python" ? std::nullopt : std::optional("no sandbox for " + language);
  }
  tl::expected<Judgement, CheckError> check(const CheckRequest& request, std::stop_token stop) override {
    ++calls;
    if (stop.stop_requested()) return tl::unexpected(CheckError{CheckError::Kind::cancelled, {}});
    if (before) before(stop);
    if (stop.stop_requested()) return tl::unexpected(CheckError{CheckError::Kind::cancelled, {}});
    Judgement judgement{.total = static_cast<int>(request.tests.size()), .sandbox = sandbox_time, .elapsed = sandbox_time};
    const std::size_t at = request.program.find("return ");
    if (at == std::string::npos) {
      judgement.status = CheckStatus::compile_error;
      judgement.message = "SyntaxError: invalid syntax";
      return judgement;
    }
    const int value = std::atoi(request.program.c_str() + at + 7);
    judgement.passed = value == 7 ? judgement.total : value == 6 ? std::min(1, judgement.total) : 0;
    if (judgement.passed == judgement.total) return judgement;
    judgement.status = CheckStatus::wrong_answer;
    for (int i = judgement.passed; i < judgement.total; ++i) {
      const auto* test = std::get_if<Assertion>(&request.tests[static_cast<std::size_t>(i)].body);
      judgement.failures.push_back({.index = i, .test = test != nullptr ? test->code : "test", .actual = std::to_string(value)});
    }
    if (request.want_trace) judgement.trace.push_back({.line = 2, .source = "return " + std::to_string(value), .effect = "returns " + std::to_string(value)});
    return judgement;
  }

  std::atomic<int> calls{0};
  std::chrono::milliseconds sandbox_time{3};
  std::function<void(std::stop_token)> before;
};

/// A folder of its own for each test.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fixpoint-agent-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Collects events and looks for some kind among them.
struct Events {
  std::vector<Stamped> all;
  OnEvent sink() {
    return [this](const Stamped& stamped) { all.push_back(stamped); };
  }
  template <class E>
  [[nodiscard]] std::vector<E> of() const {
    std::vector<E> found;
    for (const Stamped& stamped : all) {
      if (const auto* event = std::get_if<E>(&stamped.event)) found.push_back(*event);
    }
    return found;
  }
};

/// What must be the same with and without an interruption: everything but times, pieces of text, names drawn at random, and
/// the interruption itself. Sorted, since parallel drafts end in any order.
inline std::vector<std::string> substance(const std::vector<Stamped>& events) {
  std::vector<std::string> lines;
  for (const Stamped& stamped : events) {
    Event event = stamped.event;
    if (std::holds_alternative<TextDelta>(event) || std::holds_alternative<Resumed>(event)) continue;
    std::visit(
        [](auto& it) {
          if constexpr (requires { it.cost.wall; }) it.cost.wall = {};
          if constexpr (requires { it.left.wall; }) it.left.wall = {};
          if constexpr (requires { it.spent.wall; }) it.spent.wall = {};
          if constexpr (requires { it.escalation; }) it.escalation.clear();
        },
        event);
    lines.push_back(to_json(event));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace fixpoint::agent
