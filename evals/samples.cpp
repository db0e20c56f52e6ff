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

/// The program, or the list of programs, in one field.
tl::expected<void, DataError> add_field(const Row& row, std::size_t task, std::string_view name, Sample::Form form, std::vector<Sample>& out) {
  const sandbox::Value* value = detail::member(row.value(), name);
  if (value != nullptr && value->kind == sandbox::Value::Kind::list) {
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

tl::expected<void, DataError> add_programs(const Row& row, std::size_t task, std::vector<Sample>& out) {
  struct Field {
    std::string_view name;
    Sample::Form form;
  };
  for (const auto& [name, form] : {Field{"solution", Sample::Form::solution}, Field{"completion", Sample::Form::completion},
                                   Field{"gpt_solution", Sample::Form::chat_answer}, Field{"completions", Sample::Form::completion},
                                   Field{"code_list", Sample::Form::solution}}) {
    const sandbox::Value* value = detail::member(row.value(), name);
    if (value != nullptr && value->kind != sandbox::Value::Kind::none) return add_field(row, task, name, form, out);
  }
  return tl::unexpected(row.error("", "has no program (completion, solution, completions, code_list or gpt_solution)"));
}

/// {"0": "PROGRAM", "1": ["PROGRAM", …]}: what APPS's generate_gpt_codes.py writes (texts) and its evaluator reads (lists).
bool is_codes_by_number(const Row& row) {
  const auto& items = row.value().items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].text.empty() || items[i].text.find_first_not_of("0123456789") != std::string::npos) return false;
  }
  return row.value().kind == sandbox::Value::Kind::dict && !items.empty();
}

tl::expected<void, DataError> add_codes_by_number(const Row& row, const TaskIndex& index, const Benchmark& benchmark, std::vector<Sample>& out) {
  const auto& items = row.value().items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string& number = items[i].text;
    const std::size_t* task = index.find(number);
    if (task == nullptr) return tl::unexpected(row.error(number, "is no task of " + benchmark.name));
    if (detail::member(row.value(), number) != &items[i + 1]) continue;  // a later one counts, as in Python
    if (const auto added = add_field(row, *task, number, Sample::Form::solution, out); !added) return tl::unexpected(added.error());
  }
  return {};
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
  const bool by_number = rows->size() == 1 && is_codes_by_number(rows->front());
  if (by_number) {
    if (const auto added = add_codes_by_number(rows->front(), index, benchmark, out); !added) return tl::unexpected(added.error());
  }
  for (const Row& row : *rows) {
    if (by_number) break;
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
