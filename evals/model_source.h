#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/loop.h"
#include "evals/benchmark.h"
#include "evals/source.h"

namespace fixpoint::evals {

/// A benchmark's task as the service would be asked it: the statement and the visible tests. The hidden tests stay here.
[[nodiscard]] agent::Task agent_task(const Benchmark& benchmark, const Task& task);

struct ModelSourceOptions {
  agent::LoopOptions loop;       // rounds, drafts, feedback, budgets; `seed` is the run's, each sample gets its own from it
  int samples = 1;               // sessions a task
  agent::Amounts batch = agent::kUnlimited;  // all sessions of the source together; those that find nothing left end at once
  std::string model_sha256;      // of the model's file, or of what else names it
  /// Every event of every session ("TASK#SAMPLE"), in its order; called from many threads at once. May be empty.
  std::function<void(const std::string& session, const agent::Stamped& event)> on_event;
};

/// Programs from a model, through the same loop as the service. The services (model and checker at least) must outlive the
/// source; the loop's journal may be null.
[[nodiscard]] std::unique_ptr<Source> make_model_source(const Benchmark& benchmark, const std::vector<std::size_t>& tasks, agent::Services services,
                                                        ModelSourceOptions options);

/// What identifies the source of a model's programs: model, seed and everything else that decides a session.
[[nodiscard]] std::string model_source_sha256(const ModelSourceOptions& options, std::string_view prompt_id);

}  // namespace fixpoint::evals
