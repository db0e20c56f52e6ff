#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/usage.h"

namespace {

using namespace fixpoint::cli;

constexpr const char* kExitCodes = "Exit codes: 0 done, 1 failed or cancelled, 2 wrong usage.";
constexpr const char* kSessionExitCodes = "Exit codes: 0 done, 1 failed or cancelled, 2 wrong usage, 3 handed over to a person.";
constexpr const char* kFooter =
    "Exit codes: 0 done, 1 failed or cancelled, 2 wrong usage, 3 handed over to a person (solve). 'sandbox run' has its own.\n"
    "Examples:\n"
    "  fixpoint solve task.md -m model.gguf          write a program, run its tests, repair it\n"
    "  fixpoint generate -m model.gguf -p 'int main' continue a text\n"
    "  fixpoint serve -m model.gguf                  for editors and programs\n"
    "'fixpoint COMMAND --help' says more of each. Documentation: docs/cli.md and docs/ in the source tree.";

/// `code`, or a failure where what the command printed did not reach its reader.
int finish(int code) {
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!lost) return code;
  if (code != kSuccess && code != kHandedOver) return code;  // has said why
  const std::string reason = errno != 0 ? ": " + std::string(std::strerror(errno)) : std::string();
  return fail("cannot write to standard output" + reason);
}

int run_command(const Run& run) {
  try {
    return run ? run() : kUsage;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Fixpoint writes programs, runs them in a sandbox, explains what went wrong and repairs them.", "fixpoint"};
  app.set_version_flag("--version", "fixpoint " + version());
  app.require_subcommand(1);
  app.footer(kExitCodes);  // commands begin with it; those with other codes say so themselves
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
  app.footer(kFooter);
  app.get_subcommand("solve")->footer(kSessionExitCodes);
  app.get_subcommand("sessions")->get_subcommand("resume")->footer(kSessionExitCodes);
  for (const char* name : {"hint", "submit"}) app.get_subcommand("escalations")->get_subcommand(name)->footer(kSessionExitCodes);
  std::string help = "--help";
  if (argc > 1 && std::string_view(argv[1]) == "help") argv[1] = help.data();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return finish(app.exit(error));
    std::fputs(usage_message(app, error).c_str(), stderr);
    return kUsage;
  }
  return finish(run_command(run));
}
