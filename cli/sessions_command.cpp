#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "agent/replay.h"
#include "cli/agent_workers.h"
#include "cli/commands.h"
#include "cli/default_model.h"
#include "cli/solve_view.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

using nlohmann::json;

struct SessionsOptions {
  WorkerOptions workers;
  std::string id;
  int limit = 20;
  std::string after;
  bool json = false;
};

std::string local_time(std::chrono::sys_time<std::chrono::milliseconds> time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

json to_json(const agent::SessionRow& row) {
  return {{"id", row.id},           {"title", row.title},       {"language", row.language},
          {"model", row.model},     {"state", row.state},       {"last_seq", row.last_seq},
          {"created_ms", row.created.time_since_epoch().count()}, {"updated_ms", row.updated.time_since_epoch().count()}};
}

int list(const SessionsOptions& options) {
  auto workers = Workers::start(options.workers, Workers::Needs::journal);
  if (!workers) return fail(workers.error());
  if (!options.after.empty()) {
    if (const auto after = (*workers)->journal().session(options.after); !after) return fail("--after: " + after.error().detail);
  }
  auto rows = (*workers)->journal().sessions(options.limit, options.after);
  if (!rows) return fail(rows.error().detail);
  for (agent::SessionRow& row : *rows) {
    // Whoever runs a session holds its lock, and loses it when it dies.
    if (row.state == "running" && (*workers)->journal().lock(row.id)) row.state = "interrupted";
    if (options.json) {
      std::printf("%s\n", to_json(row).dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    } else {
      std::printf("%-16s  %-19s  %-16s  %s\n", row.id.c_str(), local_time(row.created).c_str(), row.state.c_str(), printable(row.title).c_str());
    }
  }
  return kSuccess;
}

tl::expected<std::vector<agent::Stamped>, std::string> recorded(const SessionsOptions& options) {
  auto workers = Workers::start(options.workers, Workers::Needs::journal);
  if (!workers) return tl::unexpected(workers.error());
  auto events = (*workers)->journal().events(options.id);
  if (!events) return tl::unexpected(events.error().detail);
  return *std::move(events);
}

/// The events of a session, or of an exported file.
tl::expected<std::vector<agent::Stamped>, std::string> events_of(const SessionsOptions& options) {
  if (std::filesystem::exists(options.id) || options.id == "-") {
    const auto text = read_input(options.id);
    if (!text) return tl::unexpected(text.error());
    std::vector<agent::Stamped> events;
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t end = std::min(text->find('\n', at), text->size());
      if (end > at) {
        auto event = agent::parse_stamped(std::string_view(*text).substr(at, end - at));
        if (!event) return tl::unexpected(options.id + ": event " + std::to_string(events.size() + 1) + ": " + event.error());
        events.push_back(*std::move(event));
      }
      at = end + 1;
    }
    if (events.empty()) return tl::unexpected(options.id + ": holds no event");
    return events;
  }
  return recorded(options);
}

int export_events(const SessionsOptions& options) {
  const auto events = events_of(options);
  if (!events) return fail(events.error());
  for (const agent::Stamped& stamped : *events) std::printf("%s\n", to_json(stamped).c_str());
  return kSuccess;
}

int show(const SessionsOptions& options) {
  if (options.json) return export_events(options);
  const auto events = events_of(options);
  if (!events) return fail(events.error());
  show_session(*events, colours_on_stdout());
  return kSuccess;
}

int replay(const SessionsOptions& options) {
  const auto events = events_of(options);
  if (!events) return fail(events.error());
  const agent::ReplayReport report = agent::replay(*events);
  if (options.json) {
    std::printf("%s\n", json{{"identical", report.identical()}, {"events", report.events}, {"prompts", report.prompts},
                             {"decisions", report.decisions}, {"difference", report.difference}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%d events, %d prompts rebuilt, %d decisions made again: %s\n", report.events, report.prompts, report.decisions,
                report.identical() ? "identical" : report.difference.c_str());
  }
  return report.identical() ? kSuccess : kFailure;
}

int resume(const SessionsOptions& options) {
  auto before = recorded(options);  // first: no model is loaded for a session that is not there
  if (!before) return fail(before.error());
  const std::string resume_with = options.workers.as_typed(), show_with = options.workers.journal_as_typed();
  WorkerOptions named = options.workers;
  (void)name_default_model(named);
  auto workers = Workers::start(named, Workers::Needs::everything);
  if (!workers) return fail(workers.error());
  agent::Loop loop((*workers)->services());
  const int code = run_session(
      [&](std::stop_token stop, const agent::OnEvent& on_event) { return loop.resume(options.id, std::move(stop), on_event); },
      {.json = options.json, .before = *std::move(before), .resume_with = resume_with, .show_with = show_with});
  (*workers)->finish();
  return code;
}

}  // namespace

void add_sessions_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("sessions", "List, show, resume, export and replay recorded sessions.");
  command->require_subcommand(1);
  auto options = std::make_shared<SessionsOptions>();
  const auto add = [&](const char* name, const char* help, int (*action)(const SessionsOptions&), const char* id_help) {
    auto* sub = command->add_subcommand(name, help);
    options->workers.add_journal_option(*sub);
    if (id_help != nullptr) sub->add_option("ID", options->id, id_help)->required();
    sub->add_flag("--json", options->json, "print JSON lines");
    sub->callback([options, &run, action] { run = [options, action] { return action(*options); }; });
    return sub;
  };
  auto* list_command = add("list", "The newest sessions.", list, nullptr);
  list_command->add_option("--limit", options->limit, "how many")->check(CLI::Range(1, 10'000))->capture_default_str();
  list_command->add_option("--after", options->after, "those older than this one");
  add("show", "The rounds of a session.", show, "a session, or an exported file");
  add("export", "Every event of a session, one a line.", export_events, "a session");
  add("replay", "Work everything out again from what model and sandbox said, and compare.", replay, "a session, or an exported file");
  options->workers.add_model_options(*add("resume", "Go on with a session that was interrupted.", resume, "a session"));
}

}  // namespace fixpoint::cli
