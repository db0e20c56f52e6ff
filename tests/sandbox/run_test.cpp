#include <gtest/gtest.h>

#include "sandbox/sandbox.h"

namespace fixpoint::sandbox {
namespace {

/// One sandbox for all tests of this file: starting one costs a probe run.
Sandbox& sandbox() {
  static tl::expected<Sandbox, StartError> instance = Sandbox::start();
  if (!instance) throw std::runtime_error(instance.error().message());
  return *instance;
}

Job python(std::string source) { return {.language = Language::python, .source = std::move(source)}; }
Job c(std::string source) { return {.language = Language::c, .source = std::move(source)}; }

std::string verdict_of(const Verdict& verdict) {
  return describe(verdict.outcome) + "\n" + verdict.standard_output.bytes + verdict.standard_error.bytes;
}

TEST(SandboxRunTest, PythonReadsItsInputAndWritesItsOutput) {
  Job job = python("print(sum(map(int, input().split())))");
  job.input = "1 2 3\n";
  const Verdict verdict = sandbox().run(job);
  EXPECT_TRUE(verdict.ok()) << verdict_of(verdict);
  EXPECT_EQ(verdict.standard_output.bytes, "6\n");
}

TEST(SandboxRunTest, CIsCompiledAndRun) {
  const Job job = c("#include <stdio.h>\nint main(void) { puts(\"hi\"); return 3; }");
  const Verdict verdict = sandbox().run(job);
  ASSERT_TRUE(std::holds_alternative<ExitNonzero>(verdict.outcome)) << verdict_of(verdict);
  EXPECT_EQ(std::get<ExitNonzero>(verdict.outcome).code, 3);
  EXPECT_EQ(verdict.standard_output.bytes, "hi\n");
  EXPECT_TRUE(sandbox().run(job).compile_cached);
}

}  // namespace
}  // namespace fixpoint::sandbox
