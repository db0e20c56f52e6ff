#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "evals/judge.h"

/// What a run leaves behind: one line of JSON for each program, and one that says what the run was.
namespace fixpoint::evals {

/// One attempt of a session: a generation and what its program came to.
struct Attempt {
  int round = 0;             // 0: first drafts
  std::string purpose;       // draft, repair…
  std::string program;       // as the model wrote it
  std::string explanation;   // the model's words
  int visible_tests = 0;
  int visible_passed = 0;
  std::string visible_failure;
  bool passed = false;       // hidden tests
  Outcome outcome = Outcome::not_judged;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  double sandbox_seconds = 0;  // wall time of its visible tests
};

/// One program for one task, judged.
struct Record {
  std::string key;      // the same for the same data, task, sample and source: no program is judged twice into a report
  std::string task;
  std::size_t index = 0;  // of the task in its benchmark
  int sample = 0;
  std::map<std::string, std::string> labels;  // the task's groups
  std::string program;
  bool closed = true;   // Program::closed
  Judgement judgement;
  bool has_visible = false;
  bool visible_passed = false;
  bool repeat_due = false;  // a timeout, of the program or of an attempt, that is still to be repeated alone
  bool repeated = false;    // judged again, alone
  std::string ended;        // how a session ended; empty for programs that were there
  std::vector<Attempt> attempts;
  std::optional<std::size_t> best;  // the attempt that is the end result
  double wall_seconds = 0;  // of everything for this program
};

/// What was run: enough to run it again, and to refuse mixing two runs.
struct RunInfo {
  std::string benchmark;
  std::string data_file;
  std::string data_sha256;
  std::size_t data_tasks = 0;   // in the file
  std::string data_status;      // "published file", or how it differs
  std::size_t programs = 0;     // in this run
  std::string prompt_id;
  std::string source;           // reference, samples, model
  std::string source_name;      // a file or a model
  std::string source_sha256;
  std::string selection;        // --limit, --filter, --shard as given
  std::uint64_t seed = 0;
  std::map<std::string, std::string> budget;  // rounds, tokens, wall, drafts, temperature, feedback…
  std::string version;          // of this program
  std::string commit;
  std::string machine;
  std::string sandbox;          // active protections
  std::string started;          // UTC

  /// The first field in which parts of one run can't differ and these do, with both values ("seed: 1 and 2"); empty where there
  /// is none. Parts may differ in selection and programs, and in machine, commit, version, sandbox, paths and time.
  [[nodiscard]] std::string difference(const RunInfo& other) const;
  /// Whether the two are one run that goes on: no difference, and the same selection and programs.
  [[nodiscard]] bool same_run(const RunInfo& other) const;
};

[[nodiscard]] std::string to_json_line(const Record& record);
[[nodiscard]] tl::expected<Record, std::string> parse_record(std::string_view line);
[[nodiscard]] std::string to_json_line(const RunInfo& info);
/// The budget in words: "rounds 3, seconds 600".
[[nodiscard]] std::string budget_text(const RunInfo& info);
/// All that is known of a run, as texts with their names in the results file: for reports that are no JSON.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> described(const RunInfo& info);
[[nodiscard]] tl::expected<RunInfo, std::string> parse_run_info(std::string_view line);

/// 32 hex digits from all parts.
[[nodiscard]] std::string record_key(std::string_view data_sha256, std::string_view task, int sample, std::string_view source_sha256);

/// The verdicts as one hash, without times: equal for two runs that judged the same programs the same way.
[[nodiscard]] std::string verdict_digest(const std::vector<Record>& records);

}  // namespace fixpoint::evals
