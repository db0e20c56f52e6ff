#include "evals/samples.h"

#include <unordered_map>

#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

using detail::Row;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// Finds a task by its id in any case, or by the bare number after the last '/'.
class TaskIndex {
 public:
  explicit TaskIndex(const Benchmark& benchmark) {
    for (std::size_t i = 0; i < benchmark.tasks.size(); ++i) {
      const std::string id = lower(benchmark.tasks[i].id);
      by_id_.emplace(id, i);
      if (const std::size_t slash = id.rfind('/'); slash != std::string::npos) by_id_.emplace(id.substr(slash + 1), i);
    }
  }
  [[nodiscard]] const std::size_t* find(std::string_view id) const {
    const auto found = by_id_.find(lower(id));
    return found == by_id_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string, std::size_t> by_id_;
};

tl::expected<void, DataError> add_programs(const Row& row, std::size_t task, std::vector<Sample>& out) {
  struct Field {
    std::string_view name;
    Sample::Form form;
  };
  for (const auto& [name, form] : {Field{"solution", Sample::Form::solution}, Field{"completion", Sample::Form::completion},
                                   Field{"gpt_solution", Sample::Form::chat_answer}, Field{"completions", Sample::Form::completion},
                                   Field{"code_list", Sample::Form::solution}}) {
    const sandbox::Value* value = detail::member(row.value(), name);
    if (value == nullptr || value->kind == sandbox::Value::Kind::none) continue;
    if (value->kind == sandbox::Value::Kind::list) {
      const auto texts = row.texts(name);
      if (!texts) return tl::unexpected(texts.error());
      if (texts->empty()) return tl::unexpected(row.error(name, "is empty"));
      for (const std::string& text : *texts) out.push_back({task, 0, text, form});
      return {};
    }
    const auto text = row.text(name);
    if (!text) return tl::unexpected(text.error());
    out.push_back({task, 0, *text, form});
    return {};
  }
  return tl::unexpected(row.error("", "has no program (completion, solution, completions, code_list or gpt_solution)"));
}

}  // namespace

tl::expected<std::vector<Sample>, DataError> parse_samples(std::string_view bytes, const std::filesystem::path& file,
                                                           const Benchmark& benchmark) {
  const std::string name = file.string();
  const auto text = detail::inflate_if_compressed(bytes);
  if (!text) return tl::unexpected(DataError{name, 0, "", text.error()});
  const auto rows = detail::parse_rows(*text, name);
  if (!rows) return tl::unexpected(rows.error());
  const TaskIndex index(benchmark);
  std::vector<Sample> out;
  for (const Row& row : *rows) {
    const std::string_view field = row.has("task_id") ? "task_id" : row.has("question_id") ? "question_id" : "name";
    const auto id = row.text(field, true);
    if (!id) return tl::unexpected(id.error());
    const std::size_t* task = index.find(*id);
    if (task == nullptr) return tl::unexpected(row.error(field, "'" + *id + "' is no task of " + benchmark.name));
    if (const auto added = add_programs(row, *task, out); !added) return tl::unexpected(added.error());
  }
  std::vector<int> count(benchmark.tasks.size(), 0);
  for (Sample& sample : out) sample.number = count[sample.task]++;
  return out;
}

tl::expected<std::vector<Sample>, DataError> load_samples(const std::filesystem::path& file, const Benchmark& benchmark) {
  const auto bytes = detail::read_file(file);
  if (!bytes) return tl::unexpected(bytes.error());
  return parse_samples(*bytes, file, benchmark);
}

}  // namespace fixpoint::evals
