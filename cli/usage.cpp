#include "cli/usage.h"

#include <algorithm>
#include <vector>

namespace fixpoint::cli {
namespace {

/// The innermost command that was named.
const CLI::App& named_command(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : named_command(*named.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string command_list(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::size_t width = 0;
  for (const auto* command : commands) width = std::max(width, command->get_name().size());
  std::string list;
  for (const auto* command : commands) {
    const std::string& name = command->get_name();
    list += "  " + name + std::string(width - name.size() + 2, ' ') + command->get_description() + "\n";
  }
  return list;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named_command(app);
  const std::string name = full_name(command);
  const std::string help = "'" + name + " --help' says more.\n";
  const auto words = app.remaining(true);
  // CLI11 says them backwards, under the program's name.
  const bool unexpected = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (command.get_require_subcommand_min() == 0 && unexpected) {
    const std::string who = words.size() > 1 ? "these arguments were" : "this argument was";
    return "fixpoint: " + who + " not expected: " + CLI::detail::join(words, " ") + "\n" + help;
  }
  const bool no_command = error.get_name() == "RequiredError" || unexpected;
  if (command.get_require_subcommand_min() == 0 || !no_command) return "fixpoint: " + std::string(error.what()) + "\n" + help;
  const std::string_view kind = !words.empty() && words.front().starts_with('-') ? "option" : "command";
  const std::string message =
      words.empty() ? "no command was named" : name + " has no " + std::string(kind) + " '" + words.front() + "'";
  return "fixpoint: " + message + "\n\nCommands of " + name + ":\n" + command_list(command) + "\n" + help;
}

}  // namespace fixpoint::cli
