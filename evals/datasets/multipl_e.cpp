// MultiPL-E: name, language, prompt, tests, stop_tokens. The data has no solutions.
#include <array>
#include <utility>

#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kLanguages{{
    {"cpp", "cpp"}, {"js", "javascript"}, {"sh", "bash"}, {"go", "go"}, {"go_test.go", "go"}, {"java", "java"},
    {"rs", "rust"}, {"py", "python"}, {"python", "python"}, {"ts", "typescript"},
}};

std::string_view language_of(std::string_view name) {
  for (const auto& [theirs, ours] : kLanguages) {
    if (theirs == name) return ours;
  }
  return {};
}

/// "HumanEval_0_has_close_elements" → "has_close_elements"
std::string entry_point_of(std::string_view name) {
  for (int i = 0; i < 2; ++i) {
    const std::size_t at = name.find('_');
    if (at == std::string_view::npos) return {};
    name.remove_prefix(at + 1);
  }
  return std::string(name);
}

tl::expected<Task, DataError> multipl_e_task(const detail::Row& row) {
  const auto name = row.text("name");
  if (!name) return tl::unexpected(name.error());
  const auto language = row.text("language");
  if (!language) return tl::unexpected(language.error());
  if (language_of(*language).empty()) return tl::unexpected(row.error("language", "is '" + *language + "', which is not supported"));
  const auto prompt = row.text("prompt");
  if (!prompt) return tl::unexpected(prompt.error());
  const auto tests = row.text("tests");
  if (!tests) return tl::unexpected(tests.error());
  if (tests->empty()) return tl::unexpected(row.error("tests", "is empty"));
  auto stops = row.texts("stop_tokens");
  if (!stops) return tl::unexpected(stops.error());
  Task task;
  task.id = *name;
  task.language = language_of(*language);
  task.prompt = *prompt;
  task.entry_point = entry_point_of(*name);
  task.stop_tokens = *std::move(stops);
  task.assembly = Assembly::cut_at_stop;
  task.hidden = ProgramTail{*tests};
  task.cpu_seconds = task.language == "javascript" ? 5 : 15;
  return task;
}

}  // namespace

bool recognises_multipl_e(const detail::Row& row) { return row.has("tests") && row.has("prompt") && row.has("language") && row.has("stop_tokens"); }

Loaded load_multipl_e(Rows rows) {
  Benchmark benchmark;
  for (const detail::Row& row : rows) {
    auto task = multipl_e_task(row);
    if (!task) return tl::unexpected(task.error());
    if (!benchmark.tasks.empty() && task->language != benchmark.tasks.front().language) {
      return tl::unexpected(row.error("language", "differs from the first row's"));
    }
    benchmark.tasks.push_back(*std::move(task));
  }
  const Task& first = benchmark.tasks.front();
  benchmark.name = (first.id.starts_with("mbpp") ? "multipl-e-mbpp-" : "multipl-e-humaneval-") + first.language;
  benchmark.prompt_id = benchmark.name + "/signature+comment";
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
