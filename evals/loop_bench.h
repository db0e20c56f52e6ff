#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "evals/loop_target.h"
#include "evals/loop_workload.h"

namespace fixpoint::evals {

struct LoopBenchOptions {
  bool chat = false;         ///< prompts as conversations, in the model's chat format
  bool predict = true;       ///< the attempt before goes along as `prediction`
  double think_scale = 1.0;  ///< times the workload's think times
};

/// A round that was answered, with times from the benchmark's start.
struct MeasuredRound {
  std::size_t session = 0;
  std::size_t round = 0;
  std::int64_t tokens = 1;  ///< that were asked for
  std::chrono::nanoseconds asked{0};
  std::vector<std::chrono::nanoseconds> arrivals;
  agent::Usage usage;
};

struct LoopRun {
  std::vector<MeasuredRound> rounds;  ///< in no order
  std::chrono::nanoseconds wall{0};
  std::vector<std::string> failures;  ///< "session s3, round 1: …"; the session ended there
};

/// Runs every session on a thread of its own, all from the same moment on. Blocks. Throws std::system_error, with nothing
/// asked, where the system doesn't give so many threads.
[[nodiscard]] LoopRun run_loop(const LoopWorkload& workload, LoopTarget& target, const LoopBenchOptions& options, std::stop_token stop);

/// Of a set of times, in milliseconds; all 0 where there are none.
struct Quantiles {
  double median = 0;
  double p99 = 0;   ///< the value that 99 % are not above (nearest rank)
  double most = 0;
};
[[nodiscard]] Quantiles quantiles_of(std::vector<double> values);

struct LoopSummary {
  std::size_t rounds = 0;         ///< answered
  std::size_t short_answers = 0;  ///< of them: with fewer tokens than were asked for, so that the other numbers compare with nothing
  double wall_s = 0;
  double rounds_per_s = 0;
  double tokens_per_s = 0;        ///< of answers, think times included in the wall time
  Quantiles ttft_ms;              ///< from the request to its first piece, all rounds
  Quantiles first_round_ttft_ms;  ///< of each session's first round: nothing of it is cached at the start
  Quantiles later_rounds_ttft_ms;
  Quantiles token_ms;             ///< of a round: (last piece - first piece) / (tokens - 1)
  Quantiles gap_ms;               ///< between two pieces of one answer
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0; ///< as the server reports them; 0 where it does not
  std::int64_t completion_tokens = 0;
};
[[nodiscard]] LoopSummary summarise(const LoopRun& run);

}  // namespace fixpoint::evals
