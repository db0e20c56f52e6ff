// Standard input in, standard output out: one run for each test, compared here.
#include "sandbox/detail/check/judge.h"

namespace fixpoint::sandbox::detail {
namespace {

void judge_output(TestResult& test, const PrintedTest& asked, const Verdict& verdict, const TextEquality& rules, std::size_t max_text_bytes) {
  if (!verdict.ok()) {
    const bool crashed = limit_of(verdict.outcome).empty();
    test.outcome = crashed ? TestOutcome::crashed : TestOutcome::limit;
    test.message = describe(verdict.outcome);
    const std::string& errors = verdict.standard_error.bytes;
    // The end of standard error says why; its beginning is often noise.
    const std::size_t kept = std::min(errors.size(), max_text_bytes);
    test.got = errors.substr(errors.size() - kept);
    return;
  }
  if (verdict.standard_output.truncated) {
    test.outcome = TestOutcome::limit;
    test.message = "the output was cut";
    return;
  }
  const auto different = difference(verdict.standard_output.bytes, asked.expected, rules);
  if (!different) {
    test.outcome = TestOutcome::passed;
    return;
  }
  test.outcome = TestOutcome::wrong;
  test.got = different->got;
  test.expected = different->expected;
  test.message = "line " + std::to_string(different->line) + " differs";
}

}  // namespace

void Judge::printed(const PrintedCheck& check) {
  result.level = CheckLevel::printed_output;
  result.tests.resize(check.tests.size());
  Job job;
  job.language = program.language;
  job.source = program.source;
  job.limits = options.limits;
  add_files(job, program);
  for (std::size_t i = 0; i < check.tests.size(); ++i) {
    const PrintedTest& asked = check.tests[i];
    TestResult& test = result.tests[i];
    job.input = asked.input;
    job.arguments = asked.arguments;
    Verdict verdict = sandbox.run(job, stop);
    judge_output(test, asked, verdict, check.equality, options.max_text_bytes);
    result.cpu += verdict.usage.cpu + verdict.compile_usage.cpu;
    result.wall += verdict.usage.wall + verdict.compile_usage.wall;
    const bool broken = std::holds_alternative<SetupError>(verdict.outcome) || std::holds_alternative<InternalError>(verdict.outcome);
    if (broken) result.error = describe(verdict.outcome);
    const bool failed = test.outcome != TestOutcome::passed;
    if (failed) test.test = shown(asked.input);
    const bool useless = std::holds_alternative<CompileError>(verdict.outcome) || std::holds_alternative<Cancelled>(verdict.outcome);
    if (result.verdicts.empty() && (failed || i + 1 == check.tests.size())) result.verdicts.push_back(std::move(verdict));
    if (broken || useless || (failed && options.stop_at_first_failure)) return;
  }
}

}  // namespace fixpoint::sandbox::detail
