#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace fixpoint::cli {

/// Exit codes of every subcommand (docs/cli.md).
enum ExitCode : int { kSuccess = 0, kFailure = 1, kUsage = 2, kHandedOver = 3 };

/// A subcommand registers its options with `app` and stores in `run` what to do once they are parsed.
using Run = std::function<int()>;

void add_generate_command(CLI::App& app, Run& run);
void add_model_command(CLI::App& app, Run& run);
/// Below `model`.
void add_compare_kv_command(CLI::App& model, Run& run);
void add_bench_command(CLI::App& app, Run& run);
void add_bench_loop_command(CLI::App& bench, Run& run);
void add_tokenize_command(CLI::App& app, Run& run);
void add_sandbox_command(CLI::App& app, Run& run);
void add_doctor_command(CLI::App& app, Run& run);
void add_eval_command(CLI::App& app, Run& run);
void add_data_command(CLI::App& app, Run& run);
void add_solve_command(CLI::App& app, Run& run);
void add_sessions_command(CLI::App& app, Run& run);
void add_escalations_command(CLI::App& app, Run& run);
void add_acp_command(CLI::App& app, Run& run);
void add_serve_command(CLI::App& app, Run& run);
void add_token_command(CLI::App& app, Run& run);

}  // namespace fixpoint::cli
