#include "agent/sandbox_checker.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "agent/detail/fences.h"
#include "agent/detail/utf8.h"
#include "agent/difference.h"
#include "agent/prompt.h"
#include "sandbox/check.h"
#include "sandbox/sandbox.h"
#include "sandbox/trace.h"

namespace fixpoint::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using sandbox::TestOutcome;

/// Tests of one kind, which the sandbox judges together.
struct Group {
  sandbox::Check check;
  std::vector<int> indices;  ///< of the request's tests, where there is one result for each
  bool calls_candidate = false;  ///< the tests' own lines speak of `candidate`
};

void append_line(std::string& text, std::string_view line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

bool is_c(sandbox::Language language) { return language == sandbox::Language::c || language == sandbox::Language::cpp; }

/// Assertions in C and C++ are statements of a main.
std::string in_main(const Task& task, const std::string& assertions) {
  std::string text = task.setup;
  append_line(text, "int main(void) {");
  append_line(text, assertions);
  append_line(text, "return 0;\n}\n");
  return text;
}

std::vector<Group> groups_of(const CheckRequest& request, sandbox::Language language) {
  Group printed{.check = sandbox::PrintedCheck{}}, asserts{.check = sandbox::TextCheck{}};
  auto& printed_tests = std::get<sandbox::PrintedCheck>(printed.check).tests;
  auto& assert_check = std::get<sandbox::TextCheck>(asserts.check);
  if (!is_c(language)) assert_check.tests = request.task->setup;
  assert_check.entry_point = request.task->entry_point;
  std::vector<Group> others;
  for (std::size_t i = 0; i < request.tests.size(); ++i) {
    const int index = static_cast<int>(i);
    const TestBody& body = request.tests[i].body;
    if (const auto* assertion = std::get_if<Assertion>(&body)) {
      append_line(assert_check.tests, assertion->code);
      if (is_c(language) && !detail::trimmed(assertion->code).ends_with(';')) assert_check.tests += ';';
      asserts.indices.push_back(index);
    } else if (const auto* stdio = std::get_if<StdioCase>(&body)) {
      printed_tests.push_back({.input = stdio->input, .expected = stdio->output});
      printed.indices.push_back(index);
    } else {
      const auto* check = std::get_if<CheckFunction>(&body);
      sandbox::TextCheck text;
      text.entry_point = request.task->entry_point;
      if (check != nullptr) text.tests = request.task->setup;
      append_line(text.tests, check != nullptr ? check->code : std::get<TestFile>(body).content);
      Group group{.check = std::move(text), .indices = {index}, .calls_candidate = check != nullptr};
      others.push_back(std::move(group));
    }
  }
  if (is_c(language)) assert_check.tests = in_main(*request.task, assert_check.tests);
  std::vector<Group> groups;
  if (!asserts.indices.empty()) groups.push_back(std::move(asserts));
  std::move(others.begin(), others.end(), std::back_inserter(groups));
  if (!printed.indices.empty()) groups.push_back(std::move(printed));
  return groups;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// How a jail's end reads as a status; nothing where the program came to a normal end.
std::optional<CheckStatus> status_of(const sandbox::Outcome& outcome) {
  using Status = std::optional<CheckStatus>;
  return std::visit(Overloaded{
                        [](const sandbox::CompileError&) -> Status { return CheckStatus::compile_error; },
                        [](const sandbox::CpuLimit&) -> Status { return CheckStatus::time_limit; },
                        [](const sandbox::WallLimit&) -> Status { return CheckStatus::time_limit; },
                        [](const sandbox::MemoryLimit&) -> Status { return CheckStatus::memory_limit; },
                        [](const sandbox::OutputLimit&) -> Status { return CheckStatus::output_limit; },
                        [](const sandbox::FileLimit&) -> Status { return CheckStatus::output_limit; },
                        [](const sandbox::ProcessLimit&) -> Status { return CheckStatus::forbidden; },
                        [](const sandbox::SyscallDenied&) -> Status { return CheckStatus::forbidden; },
                        [](const sandbox::ExitNonzero&) -> Status { return CheckStatus::runtime_error; },
                        [](const sandbox::Signalled&) -> Status { return CheckStatus::runtime_error; },
                        [](const auto&) -> Status { return std::nullopt; },
                    },
                    outcome);
}

bool is_infrastructure(const sandbox::Outcome& outcome) {
  return std::holds_alternative<sandbox::SetupError>(outcome) || std::holds_alternative<sandbox::InternalError>(outcome);
}

bool is_syntax_error(std::string_view message) {
  return message.starts_with("SyntaxError") || message.starts_with("IndentationError") || message.starts_with("TabError");
}

CheckStatus status_of(const sandbox::TestResult& failed, const sandbox::CheckResult& result) {
  switch (failed.outcome) {
    case TestOutcome::wrong: return CheckStatus::wrong_answer;
    case TestOutcome::raised:
      if (is_syntax_error(failed.message)) return CheckStatus::compile_error;
      return failed.message.starts_with("AssertionError") ? CheckStatus::wrong_answer : CheckStatus::runtime_error;
    case TestOutcome::passed:
    case TestOutcome::limit:
    case TestOutcome::crashed:
    case TestOutcome::not_run: break;
  }
  for (const sandbox::Verdict& verdict : result.verdicts) {
    if (const auto status = status_of(verdict.outcome)) return *status;
  }
  return failed.outcome == TestOutcome::limit ? CheckStatus::time_limit : CheckStatus::runtime_error;
}

/// Assertions in C and C++ are one test to the sandbox, and run in order: those before the one that failed have passed.
void spread(sandbox::CheckResult& result, const CheckRequest& request, const Group& group) {
  if (result.tests.size() != 1 || group.indices.size() < 2) return;
  sandbox::TestResult whole = std::move(result.tests.front());
  result.tests.assign(group.indices.size(), {});
  std::size_t failed = result.passed ? group.indices.size() : 0;
  for (std::size_t i = 0; i < group.indices.size() && !result.passed; ++i) {
    const auto* assertion = std::get_if<Assertion>(&request.tests[static_cast<std::size_t>(group.indices[i])].body);
    if (assertion == nullptr) continue;
    std::string_view code = detail::trimmed(assertion->code);
    const std::size_t open = code.find('('), close = code.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) continue;
    std::string said = "Assertion `";
    said.append(detail::trimmed(code.substr(open + 1, close - open - 1))).append("' failed");
    if (whole.got.find(said) != std::string::npos) failed = i;
  }
  for (std::size_t i = 0; i < failed; ++i) result.tests[i].outcome = TestOutcome::passed;
  if (failed < result.tests.size()) result.tests[failed] = std::move(whole);
}

/// Whether the box takes a file of this name: at most four plain components (sandbox/job.h), and not the program's own.
bool fits_the_box(const std::string& path, const sandbox::Toolchain& tool) {
  if (path == tool.source_name || path == tool.artefact || std::count(path.begin(), path.end(), '/') > 3) return false;
  char before = '/';
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' || c == '/';
    if (!plain || (before == '/' && (c == '-' || c == '/'))) return false;
    before = c;
  }
  return before != '/';  // "." and ".." no task has
}

class SandboxChecker final : public Checker {
 public:
  SandboxChecker(sandbox::Sandbox& sandbox, const SandboxCheckerOptions& options) : sandbox_(&sandbox), options_(options) {}

  tl::expected<Judgement, CheckError> check(const CheckRequest& request, std::stop_token stop) override {
    if (auto refused = refusal(request.task->language)) return tl::unexpected(CheckError{CheckError::Kind::unsupported, *std::move(refused)});
    const auto language = sandbox::parse_language(request.task->language);
    const sandbox::Toolchain* tool = sandbox_->toolchains().find(*language);
    const Clock::time_point start = Clock::now();
    sandbox::Program program{.language = *language, .source = request.program};
    for (const ContextFile& file : request.task->context) {
      if (fits_the_box(file.path, *tool)) program.files.push_back({.path = file.path, .content = file.content});
    }
    auto judged = request.tests.empty() ? load(request, program, stop) : judge(request, program, stop);
    if (judged) judged->elapsed = std::max(milliseconds(1), std::chrono::ceil<milliseconds>(Clock::now() - start));
    return judged;
  }

  std::optional<std::string> refusal(const std::string& language) const override {
    return refused_language(language, sandbox_->toolchains());
  }

 private:
  sandbox::Limits limits(milliseconds time) const {
    return {.cpu = time, .wall = time, .memory_bytes = options_.memory_bytes};
  }

  std::string shown(std::string_view text) const { return detail::to_valid_utf8(bounded(text, options_.text_bytes)); }

  /// No tests: the program must start and come to an end by itself. One that waits for input it does not get has loaded.
  tl::expected<Judgement, CheckError> load(const CheckRequest& request, const sandbox::Program& program, std::stop_token stop) {
    sandbox::Job job{.language = program.language, .source = program.source};
    job.limits = limits(request.time_limit);
    job.overflow = sandbox::Overflow::discard;
    job.files = program.files;
    const sandbox::Verdict verdict = sandbox_->run(job, std::move(stop));
    if (std::holds_alternative<sandbox::Cancelled>(verdict.outcome)) return tl::unexpected(CheckError{CheckError::Kind::cancelled, {}});
    if (is_infrastructure(verdict.outcome)) {
      return tl::unexpected(CheckError{CheckError::Kind::infrastructure, describe(verdict.outcome)});
    }
    Judgement judgement{.sandbox = std::chrono::ceil<milliseconds>(verdict.usage.wall + verdict.compile_usage.wall)};
    judgement.output = shown(verdict.standard_output.bytes);
    const std::string_view errors = detail::trimmed(verdict.standard_error.bytes);
    const std::string_view last = errors.substr(errors.rfind('\n') == std::string_view::npos ? 0 : errors.rfind('\n') + 1);
    const auto status = status_of(verdict.outcome);
    if (status && !last.starts_with("EOFError")) {
      judgement.status = is_syntax_error(last) ? CheckStatus::compile_error : *status;
      judgement.message = shown(errors.empty() ? std::string_view(describe(verdict.outcome)) : errors);
    }
    return judgement;
  }

  tl::expected<Judgement, CheckError> judge(const CheckRequest& request, const sandbox::Program& program, const std::stop_token& stop) {
    const Clock::time_point deadline = Clock::now() + request.time_limit;
    Judgement judgement;
    std::optional<std::pair<Group, sandbox::TestResult>> first_failure;
    for (Group& group : groups_of(request, program.language)) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) {
        judgement.total += static_cast<int>(group.indices.size());
        if (judgement.status == CheckStatus::passed) judgement.status = CheckStatus::time_limit;
        continue;
      }
      sandbox::CheckResult result = sandbox::check(*sandbox_, program, group.check, check_options(group, left), stop);
      judgement.sandbox += std::chrono::ceil<milliseconds>(result.wall);
      if (auto error = failure_of(result, stop)) return tl::unexpected(*std::move(error));
      if (is_c(program.language)) spread(result, request, group);
      take(request, result, group, judgement);
      const sandbox::TestResult* first = result.first_failure();
      if (first != nullptr && !first_failure) first_failure.emplace(group, *first);
    }
    if (request.want_trace && first_failure && judgement.status != CheckStatus::compile_error && !stop.stop_requested()) {
      add_trace(request, program, first_failure->first, first_failure->second, deadline, stop, judgement);
    }
    return judgement;
  }

  sandbox::CheckOptions check_options(const Group& group, milliseconds left) const {
    sandbox::CheckOptions options{.limits = limits(left), .call_wall = left, .max_text_bytes = options_.text_bytes};
    if (std::holds_alternative<sandbox::PrintedCheck>(group.check) && group.indices.size() > 1) {
      // Each printed test is a run of its own: they share the time.
      constexpr milliseconds kLeast{2'000};
      options.limits = limits(std::clamp(left / static_cast<int>(group.indices.size()), std::min(kLeast, left), left));
      options.stop_at_first_failure = group.indices.size() > 10;
    }
    return options;
  }

  static std::optional<CheckError> failure_of(const sandbox::CheckResult& result, const std::stop_token& stop) {
    if (stop.stop_requested()) return CheckError{CheckError::Kind::cancelled, {}};
    for (const sandbox::Verdict& verdict : result.verdicts) {
      if (is_infrastructure(verdict.outcome)) return CheckError{CheckError::Kind::infrastructure, describe(verdict.outcome)};
    }
    // The tests themselves are no good: another program would not change that.
    if (!result.error.empty()) return CheckError{CheckError::Kind::unsupported, "the tests can't be judged: " + result.error};
    return std::nullopt;
  }

  void take(const CheckRequest& request, const sandbox::CheckResult& result, const Group& group, Judgement& judgement) const {
    judgement.passed += static_cast<int>(result.passed_tests());
    judgement.total += static_cast<int>(result.tests.size());
    if (result.passed) return;
    const sandbox::TestResult* failed = result.first_failure();
    if (failed == nullptr) {  // every test passed, but the jail came to a bad end
      ++judgement.total;
      judgement.status = CheckStatus::runtime_error;
      if (!result.verdicts.empty()) judgement.message = shown(describe(result.verdicts.back().outcome));
      return;
    }
    if (judgement.status == CheckStatus::passed) judgement.status = status_of(*failed, result);
    if (judgement.status == CheckStatus::compile_error) {
      judgement.message = shown(failed->message);
      for (const sandbox::Verdict& verdict : result.verdicts) {
        if (!verdict.standard_error.bytes.empty() && !is_syntax_error(failed->message)) judgement.message = shown(verdict.standard_error.bytes);
      }
      return;
    }
    for (std::size_t i = 0; i < result.tests.size(); ++i) {
      if (static_cast<int>(judgement.failures.size()) == options_.max_failures) break;
      const sandbox::TestResult& test = result.tests[i];
      if (test.outcome == TestOutcome::passed || test.outcome == TestOutcome::not_run) continue;
      const bool one_each = result.tests.size() == group.indices.size();
      FailedTest entry = described(test, group, one_each ? group.indices[i] : group.indices.front());
      // An assertion is quoted as it was given; it says itself what is expected.
      const auto* assertion = one_each ? std::get_if<Assertion>(&request.tests[static_cast<std::size_t>(entry.index)].body) : nullptr;
      if (assertion != nullptr) {
        entry.test = shown(assertion->code);
        if (assertion->code.find("==") != std::string::npos) entry.expected.clear();
      }
      judgement.failures.push_back(std::move(entry));
    }
  }

  FailedTest described(const sandbox::TestResult& test, const Group& group, int index) const {
    FailedTest failed{.index = index, .actual = shown(test.got)};
    const bool printed = std::holds_alternative<sandbox::PrintedCheck>(group.check);
    (printed ? failed.input : failed.test) = shown(test.test);
    if (printed || test.test.find("==") == std::string::npos) failed.expected = shown(test.expected);
    if (test.outcome == TestOutcome::wrong && !test.expected.empty()) {
      failed.difference = shown(printed ? difference_of_outputs(test.expected, test.got) : difference_of_literals(test.expected, test.got));
    }
    const bool has_words = !test.message.empty() && test.message != "AssertionError";
    if (test.outcome == TestOutcome::wrong && test.got.empty() && test.expected.empty() && has_words) {
      failed.error = shown(test.message.starts_with("AssertionError") ? test.message : "AssertionError: " + test.message);
    } else if (test.outcome != TestOutcome::wrong && test.message != "AssertionError") {
      failed.error = shown(test.message.empty() ? std::string_view(sandbox::name(test.outcome)) : std::string_view(test.message));
      if (!test.frames.empty()) {
        const sandbox::SourceFrame& frame = test.frames.back();
        failed.error += " in line " + std::to_string(frame.line) + ": " + shown(detail::trimmed(frame.text));
      }
    }
    return failed;
  }

  void add_trace(const CheckRequest& request, const sandbox::Program& program, const Group& group, const sandbox::TestResult& failed,
                 Clock::time_point deadline, const std::stop_token& stop, Judgement& judgement) const {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left < milliseconds(100) || failed.test.empty()) return;
    sandbox::TraceSubject subject;
    sandbox::Program traced = program;
    if (std::holds_alternative<sandbox::PrintedCheck>(group.check)) {
      subject = sandbox::TracedRun{failed.test};
    } else if (program.language == sandbox::Language::python) {
      subject = sandbox::TracedStatement{group.calls_candidate ? named(failed.test, request.task->entry_point) : failed.test};
    } else if (is_c(program.language) && failed.outcome == TestOutcome::crashed && failed.got.find("Assertion `") == std::string::npos) {
      traced.source += "\n#include <assert.h>\n" + std::get<sandbox::TextCheck>(group.check).tests;
      subject = sandbox::TracedRun{};
    } else {
      return take_stack(failed.frames, failed.message, judgement);
    }
    sandbox::TraceOptions options{.limits = limits(std::min(left, milliseconds(10'000))),
                                  .first_steps = static_cast<std::size_t>(options_.trace_head) * 2,
                                  .last_steps = static_cast<std::size_t>(options_.trace_tail) * 2};
    const sandbox::Trace trace = sandbox::trace(*sandbox_, traced, subject, options, stop);
    judgement.sandbox += std::chrono::ceil<milliseconds>(trace.verdict.usage.wall + trace.verdict.compile_usage.wall);
    if (is_c(program.language)) return take_report(trace, request.program, judgement);
    if (!trace.error.empty() || (trace.first.empty() && trace.last.empty())) return take_stack(failed.frames, failed.message, judgement);
    std::vector<TraceLine> lines = lines_of(trace.first);
    const std::size_t first = lines.size();
    for (TraceLine& line : lines_of(trace.last)) lines.push_back(std::move(line));
    const auto head = static_cast<std::size_t>(options_.trace_head);
    const auto tail = static_cast<std::size_t>(options_.trace_tail);
    const std::uint64_t skipped = trace.steps - std::min<std::uint64_t>(trace.steps, trace.first.size() + trace.last.size());
    const std::size_t keep_head = std::min(head, first);
    const std::size_t keep_tail = std::min(tail, lines.size() - keep_head);
    judgement.trace_head = static_cast<int>(keep_head);
    judgement.trace_left_out = static_cast<std::int64_t>(skipped + lines.size() - keep_head - keep_tail);
    judgement.trace.assign(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(keep_head));
    judgement.trace.insert(judgement.trace.end(), lines.end() - static_cast<std::ptrdiff_t>(keep_tail), lines.end());
  }

  /// Where there are no steps: the lines that the exception passed through, and what it was.
  void take_stack(const std::vector<sandbox::SourceFrame>& frames, std::string_view message, Judgement& judgement) const {
    const auto most = static_cast<std::ptrdiff_t>(options_.trace_head + options_.trace_tail);
    const auto first = frames.size() > static_cast<std::size_t>(most) ? frames.end() - most : frames.begin();
    judgement.trace_left_out = first - frames.begin();
    for (auto frame = first; frame != frames.end(); ++frame) {
      judgement.trace.push_back({.line = static_cast<int>(frame->line), .source = shown(detail::trimmed(frame->text))});
    }
    if (!judgement.trace.empty() && !message.empty()) judgement.trace.back().effect = "raises " + shown(message);
  }

  /// C and C++: the program's lines on the sanitizer's first stack, and what the sanitizer found there.
  void take_report(const sandbox::Trace& trace, std::string_view source, Judgement& judgement) const {
    const std::vector<std::string_view> lines = detail::split_lines(source);
    std::vector<sandbox::SourceFrame> frames = trace.frames;
    std::erase_if(frames, [&](const sandbox::SourceFrame& frame) { return frame.line < 1 || frame.line > static_cast<std::int64_t>(lines.size()); });
    for (sandbox::SourceFrame& frame : frames) frame.text = std::string(lines[static_cast<std::size_t>(frame.line - 1)]);
    take_stack(frames, {}, judgement);
    std::string found;
    for (const std::string_view line : detail::split_lines(trace.report)) {
      const std::size_t at = std::min(line.find("AddressSanitizer: "), line.find("runtime error: "));
      if (at == std::string_view::npos || line.starts_with("SUMMARY")) continue;
      found = line.substr(at, line.find(" on address", at) - at);
      break;
    }
    if (found.empty()) return;
    if (judgement.trace.empty()) judgement.trace.emplace_back();
    judgement.trace.back().effect = shown(found);
  }

  static std::string named(std::string test, const std::string& entry_point) {
    constexpr std::string_view kWord = "candidate(";
    for (auto at = test.find(kWord); at != std::string::npos; at = test.find(kWord, at + entry_point.size())) {
      test.replace(at, kWord.size() - 1, entry_point);
    }
    return test;
  }

  /// The sandbox's steps as lines with their effects: what a line changed stands at the line, what it gave back too.
  std::vector<TraceLine> lines_of(const std::vector<sandbox::TraceStep>& steps) const {
    std::vector<TraceLine> lines;
    for (const sandbox::TraceStep& step : steps) {
      if (step.event == "call" && step.depth == 0) continue;  // its arguments stand in the test
      std::string effect;
      for (const auto& [name, value] : step.changed) {
        if (!effect.empty()) effect += ", ";
        if (step.event == "return") {
          effect += "returns " + value;
        } else if (step.event == "raise") {
          effect += "raises " + name + (value.empty() ? "" : ": ") + value;
        } else {
          effect += name + " = " + value;
        }
      }
      const bool end_of_line = (step.event == "return" || step.event == "raise") && !lines.empty() &&
                               lines.back().line == static_cast<int>(step.line);
      if (end_of_line) {
        std::string& before = lines.back().effect;
        before += (before.empty() ? "" : ", ") + shown(effect);
      } else {
        lines.push_back({.line = static_cast<int>(step.line), .source = shown(step.text), .effect = shown(effect)});
      }
    }
    return lines;
  }

  sandbox::Sandbox* sandbox_;
  SandboxCheckerOptions options_;
};

}  // namespace

std::optional<std::string> refused_language(const std::string& language, const sandbox::Toolchains& toolchains) {
  const auto known = sandbox::parse_language(language);
  if (!known) return "no sandbox for the language '" + language + "' (fixpoint doctor lists those there are)";
  if (toolchains.find(*known) == nullptr) {
    return "no toolchain for " + language + " on this machine (fixpoint doctor says where it was looked for)";
  }
  return std::nullopt;
}

std::unique_ptr<Checker> make_sandbox_checker(sandbox::Sandbox& sandbox, SandboxCheckerOptions options) {
  return std::make_unique<SandboxChecker>(sandbox, options);
}

}  // namespace fixpoint::agent
