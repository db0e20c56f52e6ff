#include <exception>

#include "cli/commands.h"
#include "cli/serve_command.h"
#include "cli/terminal.h"

int main(int argc, char** argv) {
  using namespace fixpoint::cli;
  CLI::App app{"Fixpoint writes programs, runs them in a sandbox, explains what went wrong and repairs them.", "fixpoint"};
  app.set_version_flag("--version", "fixpoint " FIXPOINT_VERSION);
  app.require_subcommand(1);
  Run run;
  add_solve_command(app, run);
  add_sessions_command(app, run);
  add_escalations_command(app, run);
  add_serve_command(app, run);
  add_token_command(app, run);
  add_acp_command(app, run);
  add_generate_command(app, run);
  add_model_command(app, run);
  add_bench_command(app, run);
  add_tokenize_command(app, run);
  add_sandbox_command(app, run);
  add_doctor_command(app, run);
  add_eval_command(app, run);
  add_data_command(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  try {
    return run ? run() : kUsage;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
