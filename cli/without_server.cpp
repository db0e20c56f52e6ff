// The commands that serve, in a build that has none of it (SERVER=OFF): each says so.
#include "cli/commands.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

void add_missing(CLI::App& app, Run& run, const std::string& name, const std::string& does) {
  CLI::App* command = app.add_subcommand(name, does + " Not in this build.")->allow_extras();
  command->callback([&run, name] {
    run = [name] {
      return fail("this build is without the server. To have '" + name + "', build all of it: cmake --preset release && "
                  "cmake --build --preset release --target fixpoint");
    };
  });
}

}  // namespace

void add_serve_command(CLI::App& app, Run& run) { add_missing(app, run, "serve", "Serve editors and programs."); }
void add_token_command(CLI::App& app, Run& run) { add_missing(app, run, "token", "Tokens for fixpoint serve."); }
void add_acp_command(CLI::App& app, Run& run) { add_missing(app, run, "acp", "For editors that start a process."); }

}  // namespace fixpoint::cli
