#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "evals/judge.h"
#include "evals/source.h"

namespace fixpoint::evals {

struct RunOptions {
  int workers = 1;
  /// Records of an interrupted run by their key: what is judged there is not judged again (not_judged is no verdict).
  std::map<std::string, Record> done;
};

/// How far a run is.
struct Progress {
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t passed = 0;
  std::size_t resumed = 0;       // of done, from an earlier run
  std::size_t to_repeat = 0;     // records with timeouts that are still to be repeated alone
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  double seconds = 0;
};

/// Called one at a time, in the order in which programs are done; a record with `repeat_due` comes a second time.
using OnRecord = std::function<void(const Record& record, const Progress& progress)>;

struct RunResult {
  std::vector<Record> records;  // in the order of the candidates; those that are done
  bool complete = false;        // every candidate has its final record
  std::string error;            // why it stopped early, where it was no stop request
  Progress progress;
};

/// Judges every candidate, `workers` at a time; of a session each different program once. A program that ran out of time, or that
/// the sandbox failed to judge, is judged again at the end, alone on the machine as far as this run goes, and only that counts. Blocks.
[[nodiscard]] RunResult run(const Benchmark& benchmark, Source& source, Judge& judge, const RunOptions& options, const OnRecord& on_record,
                            std::stop_token stop);

}  // namespace fixpoint::evals
