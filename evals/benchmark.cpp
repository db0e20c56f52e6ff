#include "evals/benchmark.h"

#include <unordered_set>

#include "evals/datasets/formats.h"

namespace fixpoint::evals {
namespace {

// The more specific format first: LDB rows are HumanEval rows with visible tests.
constexpr datasets::Format kFormats[] = {
    {"EvalPlus", datasets::recognises_evalplus, datasets::load_evalplus},
    {"task family", datasets::recognises_family, datasets::load_family},
    {"LDB", datasets::recognises_ldb, datasets::load_ldb},
    {"HumanEval", datasets::recognises_humaneval, datasets::load_humaneval},
    {"MBPP", datasets::recognises_mbpp, datasets::load_mbpp},
    {"MultiPL-E", datasets::recognises_multipl_e, datasets::load_multipl_e},
    {"LiveCodeBench", datasets::recognises_livecodebench, datasets::load_livecodebench},
    {"APPS", datasets::recognises_apps, datasets::load_apps},
    {"CodeContests", datasets::recognises_code_contests, datasets::load_code_contests},
};

std::string known_formats() {
  std::string out;
  for (const datasets::Format& format : kFormats) out += (out.empty() ? "" : ", ") + std::string(format.name);
  return out;
}

}  // namespace

tl::expected<Benchmark, DataError> parse_benchmark(std::string_view bytes, const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto text = detail::inflate_if_compressed(bytes);
  if (!text) return tl::unexpected(DataError{name, 0, "", text.error()});
  const auto rows = detail::parse_rows(*text, name);
  if (!rows) return tl::unexpected(rows.error());
  for (const datasets::Format& format : kFormats) {
    if (!format.recognises(rows->front())) continue;
    auto benchmark = format.load(*rows);
    if (!benchmark) return benchmark;
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < benchmark->tasks.size(); ++i) {
      if (!seen.insert(benchmark->tasks[i].id).second) {
        return tl::unexpected((*rows)[i].error("", "task id '" + benchmark->tasks[i].id + "' is there twice"));
      }
    }
    benchmark->file = file;
    benchmark->sha256 = detail::sha256_hex(bytes);
    return benchmark;
  }
  return tl::unexpected(DataError{name, rows->front().line(), "", "is no row of a known format (" + known_formats() + ")"});
}

tl::expected<Benchmark, DataError> load_benchmark(const std::filesystem::path& file) {
  const auto bytes = detail::read_file(file);
  if (!bytes) return tl::unexpected(bytes.error());
  return parse_benchmark(*bytes, file);
}

}  // namespace fixpoint::evals
