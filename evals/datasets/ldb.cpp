// LDB's edition of HumanEval and MBPP: the visible tests (given_tests) beside the hidden ones (test). The seed files add
// a stored first program, which the sample reader takes (evals/samples.h).
#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

/// The MBPP rows call check themselves in their last line; the judge calls it, once.
std::string without_own_call(std::string test, const std::string& entry_point) {
  const std::string call = "\ncheck(" + entry_point + ")";
  const std::size_t last = test.find_last_not_of(" \r\n");
  if (last == std::string::npos) return test;
  test.resize(last + 1);
  if (test.ends_with(call)) test.resize(test.size() - call.size());
  return test + "\n";
}

tl::expected<Task, DataError> ldb_task(const detail::Row& row) {
  Task task;
  const auto id = row.text("task_id");
  if (!id) return tl::unexpected(id.error());
  const auto prompt = row.text("prompt");
  if (!prompt) return tl::unexpected(prompt.error());
  const auto entry_point = row.text("entry_point");
  if (!entry_point) return tl::unexpected(entry_point.error());
  const auto solution = row.text("canonical_solution");
  if (!solution) return tl::unexpected(solution.error());
  const auto test = row.text("test");
  if (!test) return tl::unexpected(test.error());
  auto given = row.texts("given_tests");
  if (!given) return tl::unexpected(given.error());
  if (test->find("def check(") == std::string::npos) return tl::unexpected(row.error("test", "defines no check(candidate)"));
  const bool mbpp = id->starts_with("MBPP/");
  task.id = *id;
  task.language = "python";
  task.prompt = *prompt;
  task.entry_point = *entry_point;
  task.reference = mbpp ? *solution : *prompt + *solution;
  task.assembly = Assembly::prompt_first;
  task.stop_tokens = {"\nclass ", "\nprint", "\nif __name__"};
  task.visible_asserts = *std::move(given);
  task.hidden = CheckFunction{without_own_call(*test, *entry_point)};
  task.cpu_seconds = mbpp ? 10 : 3;
  return task;
}

}  // namespace

bool recognises_ldb(const detail::Row& row) { return row.has("given_tests") && row.has("test") && row.has("entry_point"); }

Loaded load_ldb(Rows rows) {
  Benchmark benchmark;
  for (const detail::Row& row : rows) {
    auto task = ldb_task(row);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  const bool mbpp = benchmark.tasks.front().id.starts_with("MBPP/");
  benchmark.name = mbpp ? "ldb-mbpp" : "ldb-humaneval";
  benchmark.prompt_id = benchmark.name + "/signature+docstring+given-tests";
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
