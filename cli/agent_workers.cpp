#include "cli/agent_workers.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "agent/local_generator.h"
#include "agent/openai_generator.h"
#include "agent/sandbox_checker.h"
#include "agent/scripted_generator.h"
#include "cli/checks.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"

namespace fixpoint::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

/// A secret from a file, or from the first environment variable that is set.
tl::expected<std::string, std::string> secret(const std::string& file, std::initializer_list<const char*> variables) {
  if (!file.empty()) {
    auto text = read_input(file);
    if (!text) return text;
    return without_line_end(*std::move(text));
  }
  for (const char* variable : variables) {
    if (std::string value = environment(variable); !value.empty()) return value;
  }
  return std::string();
}

tl::expected<std::filesystem::path, std::string> journal_path(const std::string& named) {
  if (!named.empty()) return named;
  if (const std::string path = environment("FIXPOINT_JOURNAL"); !path.empty()) return path;
  const std::string state = environment("XDG_STATE_HOME"), home = environment("HOME");
  if (state.empty() && home.empty()) return tl::unexpected(std::string("there is no place for the journal: HOME is not set, and --journal names no file"));
  const std::filesystem::path base = state.empty() ? std::filesystem::path(home) / ".local" / "state" : std::filesystem::path(state);
  return base / "fixpoint" / "journal.db";
}

/// Opens the journal, or makes it. Who only wants to read what was recorded gets no new one for a name that was mistyped.
tl::expected<std::unique_ptr<agent::Journal>, std::string> open_journal(const std::filesystem::path& path, const WorkerOptions& options, bool only_read) {
  if (only_read && !options.journal.empty() && !std::filesystem::exists(path)) return tl::unexpected("--journal: there is no file '" + options.journal + "'");
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return tl::unexpected("cannot make the journal's folder '" + path.parent_path().string() + "': " + error.message());
  auto journal = agent::Journal::open(path, {.sync_every_commit = options.journal_sync});
  if (!journal) return tl::unexpected("cannot open the journal: " + journal.error().detail);
  return *std::move(journal);
}

CLI::Validator webhook_address() {
  return {[](std::string& text) { return agent::refused_webhook(text).value_or(""); }, "URL"};
}

/// An option as a shell reads it; nothing where it was not given.
std::string typed(const std::string& name, const std::string& value) {
  if (value.empty()) return {};
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=+,@%#";
  if (value.find_first_not_of(kPlain) == std::string::npos && !value.starts_with('#')) return " " + name + " " + value;
  std::string text = " " + name + " '";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool is_address(const std::string& model) { return model.starts_with("http://") || model.starts_with("https://"); }

}  // namespace

void WorkerOptions::add_model_options(CLI::App& app) {
  auto* named = app.add_option("-m,--model", model, "a model file or folder, or a server: http://HOST:PORT/v1[#MODEL]");
  app.add_option("--script", script, "take the answers from this JSON file instead of a model (demonstrations, tests)")->excludes(named);
  app.add_option("--specialist", specialist, "a model that takes over when this one is stuck");
  app.add_option("--explainer", explainer, "a model that explains failures when this one is stuck");
  app.add_option("--api-key-file", key_file, "file with the servers' key (else FIXPOINT_API_KEY or OPENAI_API_KEY)");
  app.add_option("--specialist-key-file", specialist_key_file, "file with the specialist's key, where it is another");
  app.add_option("--explainer-key-file", explainer_key_file, "file with the explainer's key, where it is another");
  app.add_option("--ca-file", ca_file, "further certificate authority for https");
  add_webhook_options(app);
  add_device_option(app, device);
  app.add_option("--threads", threads, "CPU threads of the engine (0: all)")->check(CLI::Range(0, 1024));
  app.add_option("--kv-memory", kv_memory, "memory of the engine's KV cache, such as 4G")->check(byte_size());
  app.add_option("--kv-type", kv_type, "type of its keys and values")->check(kv_type_name())->capture_default_str();
  add_chat_template_option(app, chat_template);
  add_weight_cache_option(app, weight_cache);
}

void WorkerOptions::add_webhook_options(CLI::App& app) {
  app.add_option("--webhook", webhook, "address that is told of hand-overs")->check(webhook_address());
  app.add_option("--webhook-secret-file", webhook_secret_file, "file with the key that signs them (else FIXPOINT_WEBHOOK_SECRET)");
}

void WorkerOptions::add_journal_option(CLI::App& app) {
  app.add_option("--journal", journal, "file that sessions are recorded in (else FIXPOINT_JOURNAL, else ~/.local/state/fixpoint/journal.db)");
  app.add_flag("--journal-sync", journal_sync, "wait for the disk at every event: the record survives a power cut too");
}

void WorkerOptions::add_ladder_option(CLI::App& app) {
  app.add_option("--ladder", ladder,
                 "what is tried when rounds lead nowhere, in order: branch, explainer, specialist, person, each as KIND:ATTEMPTS+ROUNDS\n"
                 "(else branch:2, explainer:2+1 and specialist:2+2 where there are such, person)");
}

tl::expected<std::vector<agent::Rung>, std::string> WorkerOptions::rungs(bool with_specialist) const {
  std::string usual = "branch:2";
  if (!explainer.empty()) usual += ",explainer:2+1";
  if (!specialist.empty() && with_specialist) usual += ",specialist:2+2";
  usual += ",person";
  auto parsed = agent::parse_ladder(ladder.empty() ? usual : ladder);
  if (!parsed) return tl::unexpected("--ladder: " + parsed.error());
  for (const agent::Rung& rung : *parsed) {
    if (rung.kind == agent::RungKind::specialist && specialist.empty()) return tl::unexpected(std::string("--ladder: a specialist, but no --specialist"));
    if (rung.kind == agent::RungKind::explainer && explainer.empty()) return tl::unexpected(std::string("--ladder: an explainer, but no --explainer"));
  }
  return parsed;
}

std::string WorkerOptions::as_typed() const {
  std::string text;
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"-m", model}, {"--script", script}, {"--specialist", specialist},
                                    {"--explainer", explainer}, {"--api-key-file", key_file}, {"--specialist-key-file", specialist_key_file},
                                    {"--explainer-key-file", explainer_key_file}, {"--ca-file", ca_file}, {"--chat-template", chat_template}, {"--journal", journal},
                                    {"--webhook", webhook}, {"--webhook-secret-file", webhook_secret_file}}) {
    text += typed(name, value);
  }
  const WorkerOptions usual;
  if (device != usual.device) text += typed("--device", device);
  if (kv_type != usual.kv_type) text += typed("--kv-type", kv_type);
  if (threads != usual.threads) text += typed("--threads", std::to_string(threads));
  return text + typed("--kv-memory", kv_memory);
}

std::string WorkerOptions::journal_as_typed() const { return typed("--journal", journal); }

tl::expected<std::unique_ptr<agent::Generator>, std::string> Workers::open_model(const std::string& name,
                                                                                 const std::string& key_file,
                                                                                 const WorkerOptions& options,
                                                                                 engine::LanguageModel** local) {
  if (is_address(name)) {
    auto key = secret(key_file, {"FIXPOINT_API_KEY", "OPENAI_API_KEY"});
    if (!key) return tl::unexpected(key.error());
    return agent::make_openai_generator({.base_url = name, .key = *std::move(key), .ca_file = options.ca_file});
  }
  ModelOptions model;
  model.path = name;
  model.device = options.device;
  if (local == &local_.model) model.chat_template = options.chat_template;
  model.threads = options.threads;
  model.kv_memory = options.kv_memory;
  model.kv_type = options.kv_type;
  model.weight_cache = options.weight_cache;
  auto loaded = model.load();
  if (!loaded) return tl::unexpected(loaded.error());
  auto format = (*loaded)->chat_format();
  if (!format && !options.chat_template.empty()) format = engine::parse_chat_format(options.chat_template).value();
  if (!format) return tl::unexpected(name + ": " + format.error() + " (--chat-template chooses one)");
  models_.push_back(*std::move(loaded));
  engine::LanguageModel& it = *models_.back();
  *local = &it;
  return agent::make_local_generator(it.engine(), {.name = it.description(), .format = *format, .starts_programs = it.program_start_given()});
}

tl::expected<std::unique_ptr<Workers>, std::string> Workers::start(const WorkerOptions& options, Needs needs) {
  std::unique_ptr<Workers> workers(new Workers());
  const auto path = journal_path(options.journal);
  if (!path) return tl::unexpected(path.error());
  auto journal = open_journal(*path, options, needs == Needs::journal);
  if (!journal) return tl::unexpected(journal.error());
  workers->journal_ = *std::move(journal);
  workers->journal_file_ = *path;
  if (needs == Needs::journal) return workers;

  auto started = sandbox::Sandbox::start();
  if (!started) return tl::unexpected("the sandbox can't start: " + started.error().message() + " (fixpoint doctor says more)");
  workers->sandbox_.emplace(*std::move(started));
  workers->checker_ = agent::make_sandbox_checker(*workers->sandbox_);
  if (!options.webhook.empty()) {
    auto key = secret(options.webhook_secret_file, {"FIXPOINT_WEBHOOK_SECRET"});
    if (!key) return tl::unexpected(key.error());
    if (key->empty()) std::fprintf(stderr, "fixpoint: the webhook's messages are not signed: no --webhook-secret-file and no FIXPOINT_WEBHOOK_SECRET\n");
    workers->webhook_ = std::make_unique<agent::Webhook>(
        *workers->journal_, agent::WebhookOptions{.url = options.webhook, .secret = *std::move(key), .ca_file = options.ca_file});
  }
  if (!options.script.empty()) {
    const auto text = read_input(options.script);
    if (!text) return tl::unexpected(text.error());
    auto answers = agent::parse_script(*text);
    if (!answers) return tl::unexpected(options.script + ": " + answers.error());
    workers->model_ = agent::make_scripted_generator(*std::move(answers));
  } else if (!options.model.empty()) {
    auto model = workers->open_model(options.model, options.key_file, options, &workers->local_.model);
    if (!model) return tl::unexpected(model.error());
    workers->model_ = *std::move(model);
  } else if (needs == Needs::everything) {
    return tl::unexpected(std::string("no model named: -m FILE or -m http://HOST:PORT/v1"));
  } else {
    workers->model_ = agent::make_scripted_generator({});  // is never asked
  }
  struct Other {
    const std::string& name;
    const std::string& own_key_file;
    std::unique_ptr<agent::Generator>& slot;
    engine::LanguageModel** local;
  };
  for (const Other& other : {Other{options.specialist, options.specialist_key_file, workers->specialist_, &workers->local_.specialist},
                             Other{options.explainer, options.explainer_key_file, workers->explainer_, &workers->local_.explainer}}) {
    if (other.name.empty()) continue;
    auto model = workers->open_model(other.name, other.own_key_file.empty() ? options.key_file : other.own_key_file, options, other.local);
    if (!model) return tl::unexpected(model.error());
    other.slot = *std::move(model);
  }
  return workers;
}

agent::Services Workers::services() {
  return {.model = model_.get(),
          .specialist = specialist_.get(),
          .explainer = explainer_.get(),
          .checker = checker_.get(),
          .journal = journal_.get()};
}

void Workers::finish() {
  if (webhook_ != nullptr) webhook_->drain(std::chrono::seconds(5));
}

/// Signals only set a flag; a thread looks at it.
struct InterruptStop::Impl {
  InterruptFlag flag;
  std::stop_source source;
  std::jthread watch{[this](const std::stop_token& end) {
    while (!end.stop_requested() && !source.stop_requested()) {
      if (InterruptFlag::raised()) source.request_stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }};
};

InterruptStop::InterruptStop() : impl_(std::make_unique<Impl>()) {}
InterruptStop::~InterruptStop() = default;
std::stop_token InterruptStop::token() const { return impl_->source.get_token(); }

}  // namespace fixpoint::cli
