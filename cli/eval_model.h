#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/agent_workers.h"
#include "evals/loop_recording.h"
#include "evals/source.h"

namespace fixpoint::cli {

/// "300", "0.5"
[[nodiscard]] std::string short_number(double value);

/// How `fixpoint eval` asks a model: the loop of `fixpoint solve`, once or several times a task.
struct EvalModelOptions {
  WorkerOptions workers;
  int samples = 1;
  int rounds = 3;
  int drafts = 1;
  std::string feedback = "unit_test+explanation+trace";
  std::int64_t max_tokens = 16'384;
  std::int64_t round_tokens = 2'048;
  double timeout_seconds = 600;
  std::optional<std::int64_t> total_tokens;       ///< of all sessions; with --resume, of those that are still to run
  std::optional<double> total_sandbox_seconds;
  double temperature = 0;
  double branch_temperature = 0.8;
  std::uint64_t seed = 1;
  std::string record;  ///< file for a trace of the sessions (evals/loop_workload.h)

  void add_to(CLI::App& app);
  [[nodiscard]] bool named() const { return !workers.model.empty() || !workers.script.empty(); }
};

/// A source of programs and who works for it; destroyed in this order.
struct ModelPrograms {
  std::unique_ptr<evals::LoopRecorder> recorder;  ///< null where nothing is recorded
  std::unique_ptr<Workers> workers;
  std::unique_ptr<evals::Source> source;
};

/// Starts the model and describes it in `info`. Error: a message for a person.
[[nodiscard]] tl::expected<ModelPrograms, std::string> start_model(const EvalModelOptions& options, const evals::Benchmark& benchmark,
                                                                   const std::vector<std::size_t>& tasks, evals::RunInfo& info);

}  // namespace fixpoint::cli
