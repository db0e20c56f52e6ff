// APPS: problem_id, question, solutions and input_output (JSON texts), starter_code, difficulty.
#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

using sandbox::Value;

/// The first of the data's solutions, with what its checker lets programs use.
tl::expected<std::string, DataError> reference_of(const detail::Row& row) {
  const auto source = row.text_or_empty("solutions");
  if (!source) return tl::unexpected(source.error());
  if (source->empty()) return std::string();
  const auto solutions = row.json_text("solutions");
  if (!solutions) return tl::unexpected(solutions.error());
  if (solutions->kind != Value::Kind::list) return tl::unexpected(row.error("solutions", "is " + std::string(detail::json_kind(*solutions)) + ", not an array"));
  if (solutions->items.empty()) return std::string();
  if (solutions->items.front().kind != Value::Kind::string) return tl::unexpected(row.error("solutions", "holds something other than programs"));
  return solutions->items.front().text;
}

tl::expected<Task, DataError> apps_task(const detail::Row& row) {
  const auto id = row.text("problem_id", true);
  if (!id) return tl::unexpected(id.error());
  const auto question = row.text("question");
  if (!question) return tl::unexpected(question.error());
  const auto starter = row.text_or_empty("starter_code");
  if (!starter) return tl::unexpected(starter.error());
  const auto solution = reference_of(row);
  if (!solution) return tl::unexpected(solution.error());
  const auto value = row.json_text("input_output");
  if (!value) return tl::unexpected(value.error());
  Task task;
  auto tests = tests_of_input_output(*value, task.entry_point);
  if (!tests) return tl::unexpected(row.error("input_output", tests.error()));
  task.id = "APPS/" + *id;
  task.language = "python";
  task.statement = *question;
  task.prompt = *starter;
  task.reference = *solution;
  task.hidden = *std::move(tests);
  task.cpu_seconds = 6;
  return task;
}

}  // namespace

bool recognises_apps(const detail::Row& row) { return row.has("input_output") && row.has("question"); }

Loaded load_apps(Rows rows) {
  Benchmark benchmark;
  benchmark.name = "apps";
  benchmark.prompt_id = "apps/question+starter";
  for (const detail::Row& row : rows) {
    auto task = apps_task(row);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
