#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "evals/result_log.h"

namespace fixpoint::evals {

/// A finished run that is part of a larger one: a shard.
struct Part {
  std::string name;    // where it lies; for messages
  StoredRun run;
  double seconds = 0;  // as its summary says; 0 where there is none
};

/// The results in a folder (or the file), and the time in the summary beside them.
[[nodiscard]] tl::expected<Part, std::string> read_part(const std::filesystem::path& path);

struct MergedRun {
  RunInfo info;                 // programs: of all parts; machine, commit and the like: all that there were; started: the first
  std::vector<Record> records;  // in order, with the keys that they had
  double seconds = 0;           // of all parts together, one after the other
};

/// One run from its parts, in any order. Refused: parts that differ in data, prompt, source, seed or budget (the error names the
/// field), parts with a task in common, unfinished ones, and budgets that all sessions of a run share. Where every shard is there the
/// selection is that of the undivided run. At least one part.
[[nodiscard]] tl::expected<MergedRun, std::string> merge(std::vector<Part> parts);

}  // namespace fixpoint::evals
