// MBPP, full (text, code, test_setup_code, test_list) and sanitized (prompt, code, test_imports, test_list).
#include <algorithm>

#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

bool identifier_character(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool starts = at == 0 || !identifier_character(text[at - 1]);
    const std::size_t end = at + word.size();
    if (starts && (end == text.size() || !identifier_character(text[end]))) return true;
  }
  return false;
}

/// The last top-level function of the reference that the first test names.
std::string entry_point_of(std::string_view code, std::string_view test) {
  std::string found;
  for (std::size_t start = 0; start < code.size();) {
    const std::size_t end = std::min(code.find('\n', start), code.size());
    std::string_view line = code.substr(start, end - start);
    start = end + 1;
    if (!line.starts_with("def ")) continue;
    line.remove_prefix(4);
    const std::size_t skip = std::min(line.find_first_not_of(' '), line.size());
    line.remove_prefix(skip);
    std::size_t length = 0;
    while (length < line.size() && identifier_character(line[length])) ++length;
    if (length > 0 && has_word(test, line.substr(0, length))) found = line.substr(0, length);
  }
  return found;
}

tl::expected<Task, DataError> mbpp_task(const detail::Row& row, bool sanitized) {
  const auto id = row.text("task_id", true);
  if (!id) return tl::unexpected(id.error());
  const auto statement = row.text(sanitized ? "prompt" : "text");
  if (!statement) return tl::unexpected(statement.error());
  const auto code = row.text("code");
  if (!code) return tl::unexpected(code.error());
  auto tests = row.texts("test_list");
  if (!tests) return tl::unexpected(tests.error());
  if (tests->empty()) return tl::unexpected(row.error("test_list", "is empty"));
  const auto setup = row.text_or_empty("test_setup_code");
  if (!setup) return tl::unexpected(setup.error());
  const auto imports = row.texts_or_none("test_imports");
  if (!imports) return tl::unexpected(imports.error());
  Task task;
  task.id = "MBPP/" + *id;
  task.language = "python";
  task.statement = *statement;
  task.reference = *code;
  task.entry_point = entry_point_of(*code, tests->front());
  task.visible_asserts = {tests->front()};
  Asserts asserts;
  for (const std::string& line : *imports) asserts.setup += line + "\n";
  asserts.setup += *setup;
  asserts.statements = *std::move(tests);
  task.hidden = std::move(asserts);
  task.cpu_seconds = 10;  // task 123's own solution takes 2.6 s
  return task;
}

}  // namespace

bool recognises_mbpp(const detail::Row& row) { return row.has("test_list") && row.has("code") && (row.has("text") || row.has("prompt")); }

Loaded load_mbpp(Rows rows) {
  const bool sanitized = !rows.front().has("text");
  Benchmark benchmark;
  benchmark.name = sanitized ? "mbpp-sanitized" : "mbpp";
  benchmark.prompt_id = "mbpp/statement+first-test";
  for (const detail::Row& row : rows) {
    auto task = mbpp_task(row, sanitized);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
