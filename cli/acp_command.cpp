#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "cli/agent_workers.h"
#include "cli/build_info.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/default_model.h"
#include "cli/terminal.h"
#include "server/acp_bridge.h"
#include "server/acp_stdio.h"
#include "server/admission.h"
#include "server/event_log.h"
#include "server/metrics.h"

namespace fixpoint::cli {
namespace {

struct AcpOptions {
  WorkerOptions workers;
  std::string url;
  std::string token_file;
  int rounds = 3;
  int drafts = 1;
  std::int64_t max_tokens = 16'384;
  std::int64_t round_tokens = 2'048;
  double timeout_seconds = 600;
};

agent::LoopOptions loop_options(const AcpOptions& options, std::vector<agent::Rung> ladder) {
  agent::LoopOptions loop;
  loop.task.rounds = options.rounds;
  loop.task.tokens = options.max_tokens;
  loop.task.wall = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1000));
  loop.round.tokens = std::min(options.round_tokens, options.max_tokens);
  loop.drafts = options.drafts;
  loop.ladder = std::move(ladder);
  return loop;
}

/// Everything in this process. The protocol has stdout for itself; people's words go to stderr.
int run_here(AcpOptions options) {
  const auto ladder = options.workers.rungs(false);  // the person at the editor is asked before a specialist
  if (!ladder) {
    std::fprintf(stderr, "fixpoint acp: %s\n", ladder.error().c_str());
    return kUsage;
  }
  if (!name_default_model(options.workers)) {
    std::fprintf(stderr, "fixpoint acp: no model named: pass -m FILE (GGUF, or a folder with safetensors) or -m http://HOST:PORT/v1\n");
    return kUsage;
  }
  auto workers = Workers::start(options.workers, Workers::Needs::everything);
  if (!workers) return fail(workers.error());
  auto store = server::SessionStore::open((*workers)->conversations_file());
  if (!store) return fail(store.error().detail);
  server::Admission admission;
  server::Metrics metrics;
  server::EventLog log(-1);
  server::Services services;
  services.agent = (*workers)->services();
  services.loop = loop_options(options, *ladder);
  services.admission = &admission;
  services.metrics = &metrics;
  services.log = &log;
  std::signal(SIGPIPE, SIG_IGN);
  {
    server::SessionHub hub(services, **store);
    server::run_acp_stdio(hub, server::local_principal(), {.version = version(), .local_files = true}, STDIN_FILENO, STDOUT_FILENO);
  }
  (*workers)->finish();
  return kSuccess;
}

/// Carried to a server. The token comes from a file or from FIXPOINT_TOKEN.
int run_bridge(const AcpOptions& options) {
  server::BridgeOptions bridge{.url = options.url, .ca_file = options.workers.ca_file};
  if (!options.token_file.empty()) {
    const auto text = read_input(options.token_file);
    if (!text) return fail(text.error());
    bridge.token = text->substr(0, text->find_last_not_of(" \r\n") + 1);
  } else if (const char* token = std::getenv("FIXPOINT_TOKEN")) {
    bridge.token = token;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const std::string error = server::run_acp_bridge(bridge, STDIN_FILENO, STDOUT_FILENO);
  return error.empty() ? kSuccess : fail(error);
}

}  // namespace

void add_acp_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("acp", "Speak the Agent Client Protocol over stdin and stdout, for editors that start a process.");
  auto options = std::make_shared<AcpOptions>();
  command->add_option("--url", options->url, "a server to carry everything to (ws://HOST:PORT/acp, wss://…); else all runs in this process");
  command->add_option("--token-file", options->token_file, "file with the server's token (else FIXPOINT_TOKEN)");
  options->workers.add_model_options(*command);
  options->workers.add_journal_option(*command);
  options->workers.add_ladder_option(*command);
  command->add_option("--rounds", options->rounds, "repair rounds, where the editor asks for nothing else")->check(CLI::Range(0, agent::kMaxRounds))->capture_default_str();
  command->add_option("--drafts", options->drafts, "first drafts, written in parallel")->check(CLI::Range(1, 16))->capture_default_str();
  command->add_option("--max-tokens", options->max_tokens, "tokens that models may write for a prompt")->transform(positive_count())->capture_default_str();
  command->add_option("--round-tokens", options->round_tokens, "tokens of one answer")->transform(positive_count())->capture_default_str();
  command->add_option("--timeout", options->timeout_seconds, "seconds for a prompt")->check(positive_seconds())->capture_default_str();
  command->callback([options, &run] { run = [options] { return options->url.empty() ? run_here(*options) : run_bridge(*options); }; });
}

}  // namespace fixpoint::cli
