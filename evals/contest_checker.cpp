#include "evals/contest_checker.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "evals/detail/task_checks.h"

namespace fixpoint::evals {
namespace {

constexpr std::string_view kAssert = "assert ";

int lines_in(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n')) + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

/// What an assertion calls, where it is the task's function by one of its names: "f", "Solution().f".
std::string callee_of(std::string_view assertion, const std::string& entry_point) {
  for (const std::string& callee : {entry_point, "Solution()." + entry_point}) {
    if (assertion.starts_with(std::string(kAssert) + callee + "(")) return callee;
  }
  return {};
}

/// Numbers of lines in the words of Python's errors, without the `before` lines that the program does not have.
std::string in_own_lines(std::string text, int before) {
  for (const std::string_view mark : {", line ", " in line "}) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + mark.size())) {
      const char* const digits = text.data() + at + mark.size();
      int line = 0;
      const auto [end, code] = std::from_chars(digits, text.data() + text.size(), line);
      if (code == std::errc() && line > before) text.replace(at + mark.size(), static_cast<std::size_t>(end - digits), std::to_string(line - before));
    }
  }
  return text;
}

/// The lines of the program's own, which is `count` long.
void keep_own_lines(agent::Judgement& judgement, int before, int count) {
  std::vector<agent::TraceLine> kept;
  int head = 0;
  for (std::size_t i = 0; i < judgement.trace.size(); ++i) {
    agent::TraceLine line = std::move(judgement.trace[i]);
    line.line -= before;
    if (line.line < 1 || line.line > count) continue;
    if (static_cast<int>(i) < judgement.trace_head) ++head;
    kept.push_back(std::move(line));
  }
  judgement.trace = std::move(kept);
  judgement.trace_head = head;
}

class ContestChecker : public agent::Checker {
 public:
  explicit ContestChecker(agent::Checker& checker) : checker_(checker) {}

  tl::expected<agent::Judgement, agent::CheckError> check(const agent::CheckRequest& request, std::stop_token stop) override {
    const std::string& entry_point = request.task->entry_point;
    agent::Task task = *request.task;
    if (!entry_point.empty()) task.entry_point = detail::kContestCall;
    std::vector<agent::Test> tests(request.tests.begin(), request.tests.end());
    std::vector<std::string> callees(tests.size());
    for (std::size_t i = 0; i < tests.size(); ++i) {
      auto* assertion = std::get_if<agent::Assertion>(&tests[i].body);
      if (assertion == nullptr || entry_point.empty()) continue;
      callees[i] = callee_of(assertion->code, entry_point);
      if (!callees[i].empty()) assertion->code.replace(kAssert.size(), callees[i].size(), detail::kContestCall);
    }
    agent::CheckRequest contest = request;
    contest.task = &task;
    contest.program = detail::contest_source(request.program, entry_point);
    contest.tests = tests;
    auto judgement = checker_.check(contest, std::move(stop));
    if (judgement) in_own_words(request, callees, *judgement);
    return judgement;
  }

  std::optional<std::string> refusal(const std::string& language) const override { return checker_.refusal(language); }

 private:
  static void in_own_words(const agent::CheckRequest& request, const std::vector<std::string>& callees, agent::Judgement& judgement) {
    const int before = lines_in(detail::contest_preamble(request.task->entry_point));
    judgement.message = in_own_lines(std::move(judgement.message), before);
    for (agent::FailedTest& failure : judgement.failures) {
      const auto index = static_cast<std::size_t>(failure.index);
      const std::size_t called = failure.test.find(detail::kContestCall);
      if (called != std::string::npos && index < callees.size()) failure.test.replace(called, detail::kContestCall.size(), callees[index]);
      // Where it raised, `actual` is what the program wrote about it.
      if (!failure.error.empty()) failure.actual = in_own_lines(std::move(failure.actual), before);
      failure.error = in_own_lines(std::move(failure.error), before);
    }
    keep_own_lines(judgement, before, lines_in(request.program));
  }

  agent::Checker& checker_;
};

}  // namespace

std::unique_ptr<agent::Checker> make_contest_checker(agent::Checker& checker) { return std::make_unique<ContestChecker>(checker); }

}  // namespace fixpoint::evals
