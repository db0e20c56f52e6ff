// The task family of the embedded model (models/recipe/held_out.py): programs of a few steps, described in English, some
// of them vaguely, so that only the tests settle what is meant.
#include <algorithm>

#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

/// Assertions from pairs of argument and value, both Python text.
tl::expected<std::vector<std::string>, DataError> assertions(const detail::Row& row, std::string_view field, const std::string& function) {
  const auto pairs = row.array(field);
  if (!pairs) return tl::unexpected(pairs.error());
  std::vector<std::string> out;
  for (const sandbox::Value& pair : **pairs) {
    const bool whole = pair.kind == sandbox::Value::Kind::list && pair.items.size() == 2 && pair.items[0].kind == sandbox::Value::Kind::string &&
                       pair.items[1].kind == sandbox::Value::Kind::string;
    if (!whole) return tl::unexpected(row.error(field, "item " + std::to_string(out.size()) + " is not a pair of texts"));
    out.push_back("assert " + function + "(" + pair.items[0].text + ") == " + pair.items[1].text);
  }
  if (out.empty()) return tl::unexpected(row.error(field, "is empty"));
  return out;
}

tl::expected<bool, DataError> is_vague(const detail::Row& row) {
  const auto steps = row.array("vague");
  if (!steps) return tl::unexpected(steps.error());
  bool out = false;
  for (const sandbox::Value& step : **steps) {
    if (step.kind != sandbox::Value::Kind::boolean) return tl::unexpected(row.error("vague", "holds something other than booleans"));
    out = out || step.boolean;
  }
  return out;
}

tl::expected<Task, DataError> family_task(const detail::Row& row) {
  const auto id = row.text("task_id");
  if (!id) return tl::unexpected(id.error());
  const auto description = row.text("description");
  if (!description) return tl::unexpected(description.error());
  const auto function = row.text("function");
  if (!function) return tl::unexpected(function.error());
  const auto reference = row.text("reference");
  if (!reference) return tl::unexpected(reference.error());
  const auto steps = row.text("steps", true);
  if (!steps) return tl::unexpected(steps.error());
  const auto vague = is_vague(row);
  if (!vague) return tl::unexpected(vague.error());
  auto visible = assertions(row, "tests", *function);
  if (!visible) return tl::unexpected(visible.error());
  const auto further = assertions(row, "hidden_tests", *function);
  if (!further) return tl::unexpected(further.error());
  Task task;
  task.id = *id;
  task.language = "python";
  task.statement = *description;
  task.entry_point = *function;
  task.reference = *reference;
  task.labels = {{"steps", *steps}, {"wording", *vague ? "vague" : "plain"}};
  task.shown_tests = 1;
  Asserts hidden{"", *visible};
  hidden.statements.insert(hidden.statements.end(), further->begin(), further->end());
  task.hidden = std::move(hidden);
  task.visible_asserts = *std::move(visible);
  return task;
}

}  // namespace

bool recognises_family(const detail::Row& row) { return row.has("description") && row.has("hidden_tests") && row.has("vague") && row.has("reference"); }

Loaded load_family(Rows rows) {
  Benchmark benchmark;
  benchmark.name = "family";
  benchmark.prompt_id = "family/description+first-test";
  for (const detail::Row& row : rows) {
    auto task = family_task(row);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
