// HumanEval: task_id, prompt, entry_point, canonical_solution, test (defines check(candidate)).
#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

tl::expected<Task, DataError> humaneval_task(const detail::Row& row) {
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
  if (test->find("def check(") == std::string::npos) return tl::unexpected(row.error("test", "defines no check(candidate)"));
  Task task;
  task.id = *id;
  task.language = "python";
  task.prompt = *prompt;
  task.entry_point = *entry_point;
  task.reference = *prompt + *solution;
  task.assembly = Assembly::prompt_first;
  task.stop_tokens = {"\nclass ", "\nprint", "\nif __name__"};
  task.hidden = CheckFunction{*test};
  task.cpu_seconds = 3;
  return task;
}

}  // namespace

bool recognises_humaneval(const detail::Row& row) {
  return row.has("prompt") && row.has("test") && row.has("entry_point") && row.has("canonical_solution");
}

Loaded load_humaneval(Rows rows) {
  Benchmark benchmark;
  benchmark.name = "humaneval";
  benchmark.prompt_id = "humaneval/signature+docstring";
  for (const detail::Row& row : rows) {
    auto task = humaneval_task(row);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
