#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "agent/handover.h"
#include "cli/agent_workers.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/solve_view.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

using nlohmann::json;

struct EscalationsOptions {
  WorkerOptions workers;
  std::string id;
  std::string state;
  std::string by;
  std::string text;
  std::string file;
  int limit = 20;
  std::string after;
  int rounds = 3;
  std::int64_t tokens = 8'192;
  double seconds = 300;
  bool json = false;
};

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

/// An answer without words would use up the escalation and tell nobody anything.
CLI::Validator some_words() {
  return {[](std::string& text) { return is_blank(text) ? std::string("is empty") : std::string(); }, ""};
}

std::string person(const EscalationsOptions& options) {
  if (!options.by.empty()) return options.by;
  const char* user = std::getenv("USER");
  return user == nullptr ? "somebody" : user;
}

agent::Amounts grant_of(const EscalationsOptions& options, int rounds, std::int64_t tokens) {
  const std::chrono::milliseconds time(static_cast<std::int64_t>(options.seconds * 1000));
  return {.rounds = rounds, .tokens = tokens, .wall = time, .sandbox = time};
}

void print(const agent::EscalationRow& row, bool as_json) {
  if (as_json) {
    const json line{{"id", row.id},       {"session", row.session},       {"state", agent::to_string(row.state)},
                    {"title", row.title}, {"claimed_by", row.claimed_by}, {"created_ms", row.created.time_since_epoch().count()}};
    std::printf("%s\n", line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    std::printf("%-13s  %-14s  %-10s  session %s  %s\n", row.id.c_str(), std::string(agent::to_string(row.state)).c_str(),
                printable(row.claimed_by).c_str(), row.session.c_str(), printable(row.title).c_str());
  }
}

int list(const EscalationsOptions& options) {
  std::optional<agent::EscalationState> state;
  if (!options.state.empty()) {
    state = agent::parse_escalation_state(options.state);
    if (!state) return wrong_usage("--state: '" + options.state + "' is none of open, claimed, returned, solved_by_hand and declined");
  }
  auto workers = Workers::start(options.workers, Workers::Needs::journal);
  if (!workers) return fail(workers.error());
  if (!options.after.empty()) {
    if (const auto after = (*workers)->journal().escalation(options.after); !after) return fail("--after: " + after.error().detail);
  }
  const auto rows = (*workers)->journal().escalations(state, options.limit, options.after);
  if (!rows) return fail(rows.error().detail);
  for (const agent::EscalationRow& row : *rows) print(row, options.json);
  return kSuccess;
}

int show(const EscalationsOptions& options) {
  auto workers = Workers::start(options.workers, Workers::Needs::journal);
  if (!workers) return fail(workers.error());
  const auto row = (*workers)->journal().escalation(options.id);
  if (!row) return fail(row.error().detail);
  const auto events = (*workers)->journal().events(row->session);
  if (!events) return fail(events.error().detail);
  agent::Progress progress;
  for (const agent::Stamped& stamped : *events) progress.apply(stamped.event);
  if (options.json) {
    std::printf("%s\n", handover_json(progress).c_str());
  } else {
    print(*row, false);
    std::printf("\n%s\n", printable(handover_markdown(progress)).c_str());
  }
  return kSuccess;
}

int claim(const EscalationsOptions& options) {
  auto workers = Workers::start(options.workers, Workers::Needs::journal);
  if (!workers) return fail(workers.error());
  const auto row = (*workers)->journal().claim(options.id, person(options));
  if (!row) return fail(row.error().detail);
  print(*row, options.json);
  return kSuccess;
}

int go_on(Workers& workers, const std::string& session, const EscalationsOptions& options) {
  auto before = workers.journal().events(session);
  if (!before) return fail(before.error().detail);
  agent::Loop loop(workers.services());
  const int code = run_session(
      [&](std::stop_token stop, const agent::OnEvent& on_event) { return loop.resume(session, std::move(stop), on_event); },
      {.json = options.json, .before = *std::move(before), .resume_with = options.workers.as_typed(), .show_with = options.workers.journal_as_typed()});
  workers.finish();
  return code;
}

int hint(const EscalationsOptions& options) {
  const bool with_model = !options.workers.model.empty() || !options.workers.script.empty();
  auto workers = Workers::start(options.workers, with_model ? Workers::Needs::everything : Workers::Needs::journal);
  if (!workers) return fail(workers.error());
  const auto row = (*workers)->journal().give_hint(
      options.id, {.by = person(options), .text = options.text, .grant = grant_of(options, options.rounds, options.tokens)});
  if (!row) return fail(row.error().detail);
  if (with_model) return go_on(**workers, row->session, options);
  std::fprintf(stderr, "fixpoint: noted; goes on with: fixpoint sessions resume %s%s\n", row->session.c_str(), options.workers.as_typed().c_str());
  return kSuccess;
}

int submit(const EscalationsOptions& options) {
  const auto program = read_input(options.file);
  if (!program) return fail(program.error());
  if (is_blank(*program)) return wrong_usage("'" + options.file + "' holds no program");
  auto workers = Workers::start(options.workers, Workers::Needs::checker);
  if (!workers) return fail(workers.error());
  const auto row = (*workers)->journal().submit(
      options.id, {.by = person(options), .program = *program, .grant = grant_of(options, 0, 1)});
  if (!row) return fail(row.error().detail);
  return go_on(**workers, row->session, options);
}

int decline(const EscalationsOptions& options) {
  auto workers = Workers::start(options.workers, Workers::Needs::checker);
  if (!workers) return fail(workers.error());
  const auto row = (*workers)->journal().decline(options.id, {.by = person(options), .reason = options.text});
  if (!row) return fail(row.error().detail);
  (void)go_on(**workers, row->session, options);
  return kSuccess;
}

}  // namespace

void add_escalations_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("escalations", "What waits for a person: list, show, claim, hint, submit, decline.");
  command->require_subcommand(1);
  auto options = std::make_shared<EscalationsOptions>();
  const auto add = [&](const char* name, const char* help, int (*action)(const EscalationsOptions&), bool one) {
    auto* sub = command->add_subcommand(name, help);
    options->workers.add_journal_option(*sub);
    if (one) sub->add_option("ID", options->id, "an escalation")->required();
    sub->add_flag("--json", options->json, "print JSON");
    sub->callback([options, &run, action] { run = [options, action] { return action(*options); }; });
    return sub;
  };
  const auto add_by = [&](CLI::App* sub) { sub->add_option("--by", options->by, "who you are (else USER)"); };
  auto* list_command = add("list", "The newest ones.", list, false);
  list_command->add_option("--state", options->state, "open, claimed, returned, solved_by_hand or declined");
  list_command->add_option("--limit", options->limit, "how many")->check(CLI::Range(1, 10'000))->capture_default_str();
  list_command->add_option("--after", options->after, "those older than this one");
  add("show", "The hand-over: task, rounds, best program, smallest failing test.", show, true);
  add_by(add("claim", "Take one on.", claim, true));
  auto* hint_command = add("hint", "Give a hint and rounds; the same loop goes on.", hint, true);
  hint_command->add_option("TEXT", options->text, "the hint")->required()->check(some_words());
  hint_command->add_option("--rounds", options->rounds, "repair rounds granted")->check(CLI::Range(1, agent::kMaxRounds))->capture_default_str();
  hint_command->add_option("--max-tokens", options->tokens, "tokens granted")->transform(positive_count())->capture_default_str();
  hint_command->add_option("--timeout", options->seconds, "seconds granted")->check(positive_seconds())->capture_default_str();
  add_by(hint_command);
  options->workers.add_model_options(*hint_command);
  auto* submit_command = add("submit", "Hand in a program; it is run like any other.", submit, true);
  submit_command->add_option("FILE", options->file, "the program; - reads stdin")->required();
  add_by(submit_command);
  options->workers.add_webhook_options(*submit_command);
  auto* decline_command = add("decline", "Say no.", decline, true);
  decline_command->add_option("REASON", options->text, "why")->required()->check(some_words());
  add_by(decline_command);
  options->workers.add_webhook_options(*decline_command);
}

}  // namespace fixpoint::cli
