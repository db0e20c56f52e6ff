// What all checks share: jobs for drivers, how runs and calls end, accounts.
#include "sandbox/detail/check/judge.h"

#include "sandbox/detail/drivers/drivers.h"

#include <algorithm>

namespace fixpoint::sandbox::detail {
namespace {

using Kind = Value::Kind;

// The driver is a module of the prepared interpreter; a fresh one reads it from beside the program.
constexpr const char* python_start =
    "try:\n"
    "    import _fixpoint_driver\n"
    "except ImportError:\n"
    "    import types\n"
    "    _fixpoint_driver = types.ModuleType('_fixpoint_driver')\n"
    "    with open('fixpoint_driver.py') as f:\n"
    "        exec(compile(f.read(), 'fixpoint_driver.py', 'exec'), _fixpoint_driver.__dict__)\n"
    "_fixpoint_driver.main()\n";

std::string bounded(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0) == 0x80) --max_bytes;
  return std::string(text.substr(0, max_bytes)) + "… (" + std::to_string(text.size() - max_bytes) + " more bytes)";
}

}  // namespace

std::string text_at(const Value& record, std::size_t index) {
  return index < record.items.size() && record.items[index].kind == Kind::string ? record.items[index].text : std::string{};
}

std::string Judge::shown(std::string_view text) const { return bounded(text, options.max_text_bytes); }

void Judge::account(const Verdict& verdict) {
  result.cpu += verdict.usage.cpu + verdict.compile_usage.cpu;
  result.wall += verdict.usage.wall + verdict.compile_usage.wall;
  result.verdicts.push_back(verdict);
}

void Judge::ended_at(std::size_t index, Verdict verdict, std::optional<Silence> silence) {
  if (index < result.tests.size()) describe_end(result.tests[index], verdict, silence);
  if (std::holds_alternative<SetupError>(verdict.outcome) || std::holds_alternative<InternalError>(verdict.outcome)) {
    result.error = describe(verdict.outcome);
  }
  account(verdict);
}

void add_files(Job& job, const Program& program) {
  for (const File& file : program.files) {
    const bool taken = std::any_of(job.files.begin(), job.files.end(), [&](const File& own) { return own.path == file.path; });
    if (!taken) job.files.push_back(file);
  }
}

std::optional<Job> driver_job(const Program& program, const std::string& entry_point, const Limits& limits) {
  Job job;
  job.language = program.language;
  job.limits = limits;
  job.overflow = Overflow::discard;
  switch (program.language) {
    case Language::python:
      job.source = python_start;
      job.files.push_back({"fixpoint_driver.py", std::string(drivers::python_driver())});
      break;
    case Language::javascript:
      job.source = std::string(drivers::javascript_driver());
      break;
    case Language::cpp:
      // The candidate comes first, so that the driver's names are none that it can see or redefine by accident.
      job.source = "#define main candidate_main\n#include \"candidate.cpp\"\n#undef main\n#include \"fixpoint_driver.hpp\"\nint main() { return fixpoint_driver::serve(\"" +
                   entry_point + "\", " + entry_point + "); }\n";
      job.files.push_back({"candidate.cpp", program.source});
      job.files.push_back({"fixpoint_driver.hpp", std::string(drivers::cpp_driver())});
      break;
    default: return std::nullopt;
  }
  add_files(job, program);
  return job;
}

std::string limit_of(const Outcome& outcome) {
  const auto text = name(outcome);
  return text.ends_with("_limit") || text == "syscall_denied" ? describe(outcome) : std::string{};
}

void describe_end(TestResult& test, const Verdict& verdict, std::optional<Silence> silence) {
  const std::string limit = limit_of(verdict.outcome);
  if (silence == Silence::late && limit.empty()) {
    test.outcome = TestOutcome::limit;
    test.message = "the call took too long";
  } else if (!limit.empty()) {
    test.outcome = TestOutcome::limit;
    test.message = limit;
  } else if (silence == Silence::garbled) {
    test.outcome = TestOutcome::crashed;
    test.message = "the program left the protocol";
  } else if (verdict.ok()) {
    test.outcome = TestOutcome::crashed;
    test.message = "the program ended before it answered";
  } else {
    test.outcome = TestOutcome::crashed;
    test.message = describe(verdict.outcome);
    if (std::holds_alternative<CompileError>(verdict.outcome)) test.got = bounded(verdict.standard_error.bytes, 4000);
  }
}

void describe_exception(TestResult& test, const Value& record, std::size_t max_text_bytes) {
  const std::string message = text_at(record, 2);
  test.outcome = TestOutcome::raised;
  test.message = bounded(message.empty() ? text_at(record, 0) : text_at(record, 0) + ": " + message, max_text_bytes);
  if (text_at(record, 0) == "Unserialisable") test.outcome = TestOutcome::wrong;
  if (record.items.size() < 4 || (record.items[3].kind != Kind::list && record.items[3].kind != Kind::tuple)) return;
  for (const Value& frame : record.items[3].items) {
    if (frame.items.size() != 4 || test.frames.size() >= 40) break;
    SourceFrame& out = test.frames.emplace_back();
    out.file = bounded(text_at(frame, 0), 200);
    if (frame.items[1].kind == Kind::integer) out.line = std::strtoll(frame.items[1].text.c_str(), nullptr, 10);
    out.function = bounded(text_at(frame, 2), 200);
    out.text = bounded(text_at(frame, 3), 300);
  }
}

bool is_exception(const Value& record, std::string_view class_name) {
  if (text_at(record, 0) == class_name) return true;
  if (record.items.size() < 2) return false;
  return std::any_of(record.items[1].items.begin(), record.items[1].items.end(),
                     [&](const Value& base) { return base.text == class_name; });
}

tl::expected<Answer, Silence> load(Conversation& line, const Program& program, const std::string& module_name,
                                   bool allow_objects, std::chrono::steady_clock::time_point deadline) {
  const char* file = program.language == Language::javascript ? "solution.js" : "solution.py";
  return line.ask("load", {Value::of(program.source), Value::of(file), Value::of(module_name), Value::of(allow_objects)}, deadline);
}

}  // namespace fixpoint::sandbox::detail

namespace fixpoint::sandbox {

std::string_view name(CheckLevel level) {
  switch (level) {
    case CheckLevel::printed_output: return "printed_output";
    case CheckLevel::returned_values: return "returned_values";
    case CheckLevel::separate_tests: return "separate_tests";
    case CheckLevel::in_process: return "in_process";
  }
  return "?";
}

std::string_view name(TestOutcome outcome) {
  switch (outcome) {
    case TestOutcome::passed: return "passed";
    case TestOutcome::wrong: return "wrong";
    case TestOutcome::raised: return "raised";
    case TestOutcome::limit: return "limit";
    case TestOutcome::crashed: return "crashed";
    case TestOutcome::not_run: return "not_run";
  }
  return "?";
}

const TestResult* CheckResult::first_failure() const {
  const auto found = std::find_if(tests.begin(), tests.end(), [](const auto& t) { return t.outcome != TestOutcome::passed; });
  return found == tests.end() ? nullptr : &*found;
}

std::size_t CheckResult::passed_tests() const {
  return static_cast<std::size_t>(
      std::count_if(tests.begin(), tests.end(), [](const auto& t) { return t.outcome == TestOutcome::passed; }));
}

}  // namespace fixpoint::sandbox
