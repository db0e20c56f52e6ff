#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/drafter.h"
#include "engine/request.h"

namespace fixpoint::engine {

/// One step, or the sum of all: what was computed, how long it took, and what the backend was asked for.
struct StepCost {
  std::uint64_t tokens = 0;         ///< rows of the forward pass
  std::uint64_t sequences = 0;
  std::uint64_t flops = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::chrono::nanoseconds model{0};     ///< in copy_blocks and forward
  std::chrono::nanoseconds sampling{0};  ///< of what the model did not choose itself
  std::chrono::nanoseconds host{0};      ///< all else: planning, bookkeeping, text, callbacks
};

/// Speculation from one source.
struct DraftCounts {
  std::uint64_t drafts = 0;           ///< that were verified, in part or whole
  std::uint64_t draft_tokens = 0;     ///< verified
  std::uint64_t accepted_tokens = 0;  ///< right, and so had without a step of their own
};

/// What the engine has done since it started, and what it holds now.
struct EngineStats {
  // Work
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;      ///< of requests that have begun, cached ones included
  std::uint64_t prefill_tokens = 0;     ///< computed, recomputation after preemption included
  std::uint64_t generated_tokens = 0;
  std::array<DraftCounts, num_draft_sources> drafts{};  ///< by DraftSource
  std::uint64_t requests_submitted = 0;
  std::array<std::uint64_t, num_finish_reasons> samples_finished{};  ///< by FinishReason
  StepCost last_step;
  StepCost all_steps;
  /// Steps by duration: bucket i counts steps shorter than step_bucket_ms[i] (and not counted before), the last all others.
  static constexpr std::array<double, 12> step_bucket_ms{0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000};
  std::array<std::uint64_t, step_bucket_ms.size() + 1> step_times{};

  // Now
  int waiting = 0;  ///< sequences (samples), not requests
  int running = 0;

  // KV blocks: free + cached + held == total
  int block_size = 0;
  std::size_t bytes_per_block = 0;
  int blocks_total = 0;
  int blocks_free = 0;
  int blocks_cached = 0;  ///< reusable, held by nobody
  int blocks_held = 0;
  int blocks_pinned = 0;  ///< of the held ones

  // Prefix cache, in tokens of prompts that have begun
  std::uint64_t prefix_query_tokens = 0;
  std::uint64_t prefix_hit_tokens = 0;
  std::uint64_t blocks_evicted = 0;
  std::uint64_t blocks_copied = 0;  ///< copy on write

  std::uint64_t preemptions = 0;
  std::uint64_t watchdog_trips = 0;  ///< times the scheduler had work and found none to do; stays 0
};

}  // namespace fixpoint::engine
