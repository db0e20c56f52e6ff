#pragma once

#include "cli/commands.h"

namespace fixpoint::cli {

void add_serve_command(CLI::App& app, Run& run);
void add_token_command(CLI::App& app, Run& run);

}  // namespace fixpoint::cli
