#include "evals/source.h"

#include <algorithm>
#include <regex>

#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

class StoredSource : public Source {
 public:
  void add(const Benchmark& benchmark, std::size_t task, int sample, Program program) {
    const std::string hash = detail::sha256_hex(program.source);
    candidates_.push_back({task, sample, record_key(benchmark.sha256, benchmark.tasks[task].id, sample, hash)});
    programs_.push_back(std::move(program));
  }
  [[nodiscard]] const std::vector<Candidate>& candidates() const override { return candidates_; }
  [[nodiscard]] tl::expected<Answer, std::string> answer(std::size_t candidate, std::stop_token) override {
    return Answer{.program = programs_[candidate]};
  }

 private:
  std::vector<Candidate> candidates_;
  std::vector<Program> programs_;
};

}  // namespace

std::string Selection::text() const {
  std::string out;
  if (filter) out += "--filter " + *filter + " ";
  if (shards > 1) out += "--shard " + std::to_string(shard) + "/" + std::to_string(shards) + " ";
  if (limit) out += "--limit " + std::to_string(*limit) + " ";
  if (!out.empty()) out.pop_back();
  return out;
}

tl::expected<std::vector<std::size_t>, std::string> select(const Benchmark& benchmark, const Selection& selection) {
  if (selection.shards < 1 || selection.shard < 1 || selection.shard > selection.shards) {
    return tl::unexpected("--shard: there is no part " + std::to_string(selection.shard) + " of " + std::to_string(selection.shards));
  }
  std::optional<std::regex> filter;
  try {
    if (selection.filter) filter.emplace(*selection.filter);
  } catch (const std::regex_error& error) {
    return tl::unexpected("--filter: no regular expression: " + std::string(error.what()));
  }
  std::vector<std::size_t> out;
  std::size_t matching = 0;
  for (std::size_t i = 0; i < benchmark.tasks.size(); ++i) {
    if (filter && !std::regex_search(benchmark.tasks[i].id, *filter)) continue;
    if (matching++ % selection.shards != selection.shard - 1) continue;
    if (selection.limit && out.size() >= *selection.limit) break;
    out.push_back(i);
  }
  if (out.empty()) return tl::unexpected(std::string("no task is selected"));
  return out;
}

tl::expected<std::unique_ptr<Source>, std::string> make_reference_source(const Benchmark& benchmark, const std::vector<std::size_t>& tasks) {
  auto source = std::make_unique<StoredSource>();
  for (const std::size_t task : tasks) {
    const std::string& reference = benchmark.tasks[task].reference;
    if (reference.empty()) return tl::unexpected("the data has no solution for " + benchmark.tasks[task].id);
    source->add(benchmark, task, 0, {reference, true});
  }
  return source;
}

tl::expected<std::unique_ptr<Source>, std::string> make_sample_source(const Benchmark& benchmark, std::vector<Sample> samples,
                                                                      const std::vector<std::size_t>& tasks) {
  std::vector<bool> wanted(benchmark.tasks.size(), false);
  for (const std::size_t task : tasks) wanted[task] = true;
  std::vector<bool> attempted(benchmark.tasks.size(), false);
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.task < b.task; });
  auto source = std::make_unique<StoredSource>();
  for (const Sample& sample : samples) {
    if (!wanted[sample.task]) continue;
    attempted[sample.task] = true;
    source->add(benchmark, sample.task, sample.number, assemble(benchmark.tasks[sample.task], sample));
  }
  for (const std::size_t task : tasks) {
    if (!attempted[task]) return tl::unexpected("the samples have no program for " + benchmark.tasks[task].id + " (choose tasks with --filter or --limit)");
  }
  return source;
}

}  // namespace fixpoint::evals
