#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/agent_workers.h"
#include "cli/build_info.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/default_model.h"
#include "cli/terminal.h"
#include "server/acp_connection.h"
#include "server/admission.h"
#include "server/config.h"
#include "server/event_log.h"
#include "server/metrics.h"
#include "server/otlp.h"
#include "server/server.h"
#include "server/tenant_workers.h"

namespace fixpoint::cli {
namespace {

struct ServeOptions {
  WorkerOptions workers;
  server::ServerOptions server;
  server::Admission::Options admission;
  std::string config;
  std::string model_name;
  std::string log = "-";
  std::string otlp_endpoint;
  std::string feedback = "unit_test+explanation+trace";
  int rounds = 3;
  int drafts = 1;
  std::int64_t max_tokens = 16'384;
  std::int64_t round_tokens = 2'048;
  double timeout_seconds = 600;
  double drain_seconds = 30;
  double head_seconds = 10, body_seconds = 30, idle_seconds = 75, write_seconds = 30;
  int max_running_sessions = 16;
  bool own_tests = false;
};

std::chrono::milliseconds ms(double seconds) { return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)); }

/// What the file says and no flag said.
void apply_config(CLI::App& command, const std::string& file) {
  const auto text = read_input(file);
  if (!text) throw CLI::FileError(text.error());
  const auto entries = server::parse_config(*text);
  if (!entries) throw CLI::ConversionError(file + ": " + entries.error());
  for (const server::ConfigEntry& entry : *entries) {
    CLI::Option* option = command.get_option_no_throw(entry.flag);
    if (option == nullptr || entry.flag == "--config" || entry.flag == "--help") throw CLI::ConfigError(file + ": there is no flag " + entry.flag);
    if (option->count() > 0) continue;
    for (const std::string& value : entry.values) option->add_result(value);
    option->run_callback();
  }
}

agent::LoopOptions loop_options(const ServeOptions& options, const agent::FeedbackKinds& feedback, std::vector<agent::Rung> ladder) {
  agent::LoopOptions loop;
  loop.task.rounds = options.rounds;
  loop.task.tokens = options.max_tokens;
  loop.task.wall = ms(options.timeout_seconds);
  loop.round.tokens = std::min(options.round_tokens, options.max_tokens);
  loop.drafts = options.drafts;
  loop.feedback = feedback;
  loop.own_tests = options.own_tests;
  loop.ladder = std::move(ladder);
  return loop;
}

/// A log file that is closed when it is no longer written.
class LogFile {
 public:
  explicit LogFile(const std::string& name) {
    if (name == "-") fd_ = STDERR_FILENO;
    if (name != "-" && !name.empty()) fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    bad_ = fd_ < 0 && !name.empty();
  }
  ~LogFile() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool bad() const { return bad_; }

 private:
  int fd_ = -1;
  bool bad_ = false;
};

void say(const std::string& line) { std::fprintf(stderr, "fixpoint: %s\n", line.c_str()); }

int run_server(const ServeOptions& options, server::Services& services, server::AcpHub& acp) {
  server::ServerOptions with = options.server;
  with.handle_signals = true;
  with.drain_deadline = ms(options.drain_seconds);
  with.http.head_timeout = ms(options.head_seconds);
  with.http.body_timeout = ms(options.body_seconds);
  with.http.idle_timeout = ms(options.idle_seconds);
  with.http.write_timeout = ms(options.write_seconds);
  auto started = server::Server::start(with, services, &acp);
  if (!started) return fail(started.error());
  for (const std::string& address : (*started)->addresses()) say("listening on " + address);
  say(with.token_file.empty() ? "no token is asked for: only this machine can connect" : "tokens are read from " + with.token_file + " (SIGHUP reads again)");
  say("ready; SIGTERM drains");
  (*started)->wait();
  say("done");
  return kSuccess;
}

int serve(ServeOptions options) {
  const auto feedback = agent::parse_feedback(options.feedback);
  if (!feedback) return wrong_usage("--feedback: " + feedback.error());
  const auto ladder = options.workers.rungs();
  if (!ladder) return wrong_usage(ladder.error());
  const LogFile file(options.log);
  if (file.bad()) return wrong_usage("--log: cannot write '" + options.log + "'");
  // Before a model is loaded.
  if (const auto checked = server::Server::check(options.server); !checked) return wrong_usage(checked.error());
  if (!name_default_model(options.workers)) {
    return wrong_usage("no model named: pass -m FILE (GGUF, or a folder with safetensors) or -m http://HOST:PORT/v1, or \"model\" in --config");
  }
  auto workers = Workers::start(options.workers, Workers::Needs::everything);
  if (!workers) return fail(workers.error());

  server::EventLog log(file.fd());
  server::Metrics metrics;
  server::Admission admission(options.admission);
  const Workers::LocalModels local = (*workers)->local_models();
  server::TenantWorkers tenants((*workers)->services(), {local.model, local.specialist, local.explainer});
  server::Services services;
  services.agent = (*workers)->services();
  services.agent_for = [&tenants](const std::string& tenant) { return tenants.services(tenant); };
  services.loop = loop_options(options, *feedback, *ladder);
  services.max_running_sessions = options.max_running_sessions;
  services.model = local.model;
  services.model_id = !options.model_name.empty() ? options.model_name : local.model != nullptr ? local.model->config().name : services.agent.model->name();
  services.admission = &admission;
  services.metrics = &metrics;
  services.log = &log;
  if (local.model != nullptr) {
    say("model " + services.model_id + ": " + local.model->description() + ", room for " + std::to_string(local.model->engine().max_sequence_tokens()) + " tokens a sequence");
  } else {
    say("model " + services.model_id + " runs elsewhere: agent sessions work, /v1 completions do not");
  }
  std::unique_ptr<server::OtlpTracer> tracer;
  if (!options.otlp_endpoint.empty()) {
    auto started = server::OtlpTracer::start({.endpoint = options.otlp_endpoint}, metrics);
    if (!started) return wrong_usage(started.error());
    tracer = *std::move(started);
    services.tracer = tracer.get();
  }
  auto store = server::SessionStore::open((*workers)->conversations_file());
  if (!store) return fail(store.error().detail);
  server::SessionHub sessions(services, **store);
  services.resume_session = [&sessions](const std::string& tenant, const std::string& session) { sessions.go_on(tenant, session); };
  server::Histogram& latency = metrics.histogram("update_latency_seconds", "From an event, before it is in the journal, to an editor's socket.", server::kEventSeconds);
  server::AcpHub acp(sessions, {.peer = {.version = version()}, .latency = &latency});
  sessions.recover();
  const int code = run_server(options, services, acp);
  (*workers)->finish();
  return code;
}

void add_network_options(CLI::App& app, ServeOptions& options) {
  app.add_option("--listen", options.server.listen, "HOST:PORT, [ADDRESS]:PORT or unix:PATH; may be given several times")->capture_default_str();
  app.add_option("--tls-cert", options.server.tls_certificate, "certificate chain (PEM); TCP addresses then speak TLS only");
  app.add_option("--tls-key", options.server.tls_key, "its private key (PEM)");
  app.add_option("--tokens", options.server.token_file, "file of tokens (fixpoint token new); needed unless only this machine can connect");
  app.add_option("--origin", options.server.origins, "web pages that may call, such as https://app.example; may be given several times");
  app.add_option("--max-header-bytes", options.server.http.header_bytes, "of a request")->check(CLI::Range(512, 1'000'000))->capture_default_str();
  app.add_option("--max-body-bytes", options.server.http.body_bytes, "of a request")->check(CLI::Range(1024, 1'000'000'000))->capture_default_str();
  app.add_option("--head-timeout", options.head_seconds, "seconds for a request's head")->check(positive_seconds())->capture_default_str();
  app.add_option("--body-timeout", options.body_seconds, "seconds for a request's body")->check(positive_seconds())->capture_default_str();
  app.add_option("--idle-timeout", options.idle_seconds, "seconds between two requests of a connection")->check(positive_seconds())->capture_default_str();
  app.add_option("--write-timeout", options.write_seconds, "seconds that a client may take for a piece of an answer")->check(positive_seconds())->capture_default_str();
  app.add_option("--max-connections", options.admission.max_connections, "open sockets in all")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--max-connections-per-address", options.admission.max_connections_per_address, "open sockets of one address, or of a token without a limit of its own")
      ->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--max-sessions", options.admission.max_sessions, "sessions and completions at work in all")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--drain-timeout", options.drain_seconds, "seconds that SIGTERM gives to what is under way")->check(seconds_or_zero())->capture_default_str();
  app.add_option("--log", options.log, "where JSON lines go: a file, - for stderr, empty for nowhere")->capture_default_str();
  app.add_option("--otlp-endpoint", options.otlp_endpoint, "OpenTelemetry collector that spans go to, such as http://localhost:4318");
}

void add_loop_options(CLI::App& app, ServeOptions& options) {
  app.add_option("--model-name", options.model_name, "what clients call the model (else the name in its file)");
  app.add_option("--running-sessions", options.max_running_sessions, "agent loops at once")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--rounds", options.rounds, "repair rounds of a session")->check(CLI::Range(0, agent::kMaxRounds))->capture_default_str();
  app.add_option("--drafts", options.drafts, "first drafts, written in parallel")->check(CLI::Range(1, 16))->capture_default_str();
  app.add_option("--feedback", options.feedback, "simple, or any of unit_test, explanation, trace joined by +")->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "tokens that models may write for a session")->transform(positive_count())->capture_default_str();
  app.add_option("--round-tokens", options.round_tokens, "tokens of one answer")->transform(positive_count())->capture_default_str();
  app.add_option("--timeout", options.timeout_seconds, "seconds for a session")->check(positive_seconds())->capture_default_str();
  app.add_flag("--own-tests", options.own_tests, "where there are no tests, let the model write some");
}

}  // namespace

void add_serve_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("serve", "Serve editors over WebSocket and programs over an OpenAI-compatible API.");
  auto options = std::make_shared<ServeOptions>();
  command->add_option("--config", options->config, "JSON file for everything that a flag can say; flags win");
  options->workers.add_model_options(*command);
  options->workers.add_journal_option(*command);
  options->workers.add_ladder_option(*command);
  add_network_options(*command, *options);
  add_loop_options(*command, *options);
  command->callback([options, &run, command] {
    if (!options->config.empty()) apply_config(*command, options->config);
    if (!options->workers.script.empty() && !options->workers.model.empty()) throw CLI::ExcludesError("--script", "--model");
    run = [options] { return serve(*options); };
  });
}

}  // namespace fixpoint::cli
