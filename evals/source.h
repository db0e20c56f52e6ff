#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "evals/assemble.h"
#include "evals/benchmark.h"
#include "evals/record.h"
#include "evals/samples.h"

namespace fixpoint::evals {

/// One program that is to be judged.
struct Candidate {
  std::size_t task = 0;
  int sample = 0;
  std::string key;
};

/// A program, and how it came about.
struct Answer {
  Program program;
  std::string ended;               // of a session; empty otherwise
  std::vector<Attempt> attempts;   // judged by the visible tests only
  std::vector<Program> programs;   // of the attempts, ready for the hidden tests
  std::optional<std::size_t> best; // the attempt that `program` is from
};

/// Where programs come from. answer() may be called from many threads at once.
class Source {
 public:
  virtual ~Source() = default;
  /// In the order of the tasks. The keys are the same for the same data and source.
  [[nodiscard]] virtual const std::vector<Candidate>& candidates() const = 0;
  /// An error where there is no program for reasons outside of the task (a server that is gone); nothing on a stop request.
  [[nodiscard]] virtual tl::expected<Answer, std::string> answer(std::size_t candidate, std::stop_token stop) = 0;
};

/// Which tasks a run takes, in the benchmark's order: those whose id matches, every n-th of them, the first few of those.
struct Selection {
  std::optional<std::string> filter;  // ECMAScript regular expression, searched in the id
  std::size_t shard = 1;              // from 1
  std::size_t shards = 1;
  std::optional<std::size_t> limit;

  [[nodiscard]] std::string text() const;  // "--limit 10 --shard 1/4"; empty for all tasks
};

/// Indexes of the selected tasks; the error says what is wrong with the selection.
[[nodiscard]] tl::expected<std::vector<std::size_t>, std::string> select(const Benchmark& benchmark, const Selection& selection);

/// The data's own solutions. An error where a selected task has none.
[[nodiscard]] tl::expected<std::unique_ptr<Source>, std::string> make_reference_source(const Benchmark& benchmark, const std::vector<std::size_t>& tasks);

/// Programs that are already there; those of other tasks than `tasks` are left out. An error where a selected task has none.
[[nodiscard]] tl::expected<std::unique_ptr<Source>, std::string> make_sample_source(const Benchmark& benchmark, std::vector<Sample> samples,
                                                                                    const std::vector<std::size_t>& tasks);

}  // namespace fixpoint::evals
