// CodeContests as SandboxFusion stores it: id, content, test = JSON text of [{"input": {"stdin"}, "output": {"stdout"}}].
#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

using sandbox::Value;

const Value* text_at(const Value& test, std::string_view outer, std::string_view inner) {
  const Value* holder = detail::member(test, outer);
  const Value* text = holder == nullptr ? nullptr : detail::member(*holder, inner);
  return text != nullptr && text->kind == Value::Kind::string ? text : nullptr;
}

tl::expected<Task, DataError> code_contests_task(const detail::Row& row) {
  const auto id = row.text("id", true);
  if (!id) return tl::unexpected(id.error());
  const auto content = row.text("content");
  if (!content) return tl::unexpected(content.error());
  const auto tests = row.json_text("test");
  if (!tests) return tl::unexpected(tests.error());
  if (tests->kind != Value::Kind::list || tests->items.empty()) return tl::unexpected(row.error("test", "holds no tests"));
  Stdio stdio;
  for (const Value& test : tests->items) {
    const Value* input = text_at(test, "input", "stdin");
    const Value* output = text_at(test, "output", "stdout");
    if (input == nullptr || output == nullptr) {
      return tl::unexpected(row.error("test", "test " + std::to_string(stdio.tests.size()) + " lacks input.stdin or output.stdout"));
    }
    stdio.tests.push_back({input->text, output->text});
  }
  Task task;
  task.id = "CodeContests/" + *id;
  task.language = "python";
  task.statement = *content;
  task.hidden = std::move(stdio);
  task.cpu_seconds = 6;
  return task;
}

}  // namespace

bool recognises_code_contests(const detail::Row& row) {
  const Value* test = detail::member(row.value(), "test");
  return row.has("content") && test != nullptr && test->kind == Value::Kind::string && test->text.starts_with('[');
}

Loaded load_code_contests(Rows rows) {
  Benchmark benchmark;
  benchmark.name = "code-contests";
  benchmark.prompt_id = "code-contests/statement";
  for (const detail::Row& row : rows) {
    auto task = code_contests_task(row);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
