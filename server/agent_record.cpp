#include "server/agent_record.h"

#include "server/admission.h"
#include "server/event_log.h"
#include "server/metrics.h"

namespace fixpoint::server {
namespace {

using agent::to_string;
using std::chrono::milliseconds;

std::string text(std::string_view view) { return std::string(view); }
double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

struct Recorder {
  const Services& services;
  const Principal& who;
  const TraceContext& trace;
  const agent::Stamped& stamped;
  Metrics& metrics = *services.metrics;

  void log(std::string_view event, std::string_view kind, std::string_view detail = {}) const {
    services.log->write(event, {{"session", stamped.session}, {"seq", stamped.seq}, {"tenant", who.tenant}, {"token", who.token_id},
                                {"trace", trace.trace_id}, {"kind", kind}, {"detail", detail}});
  }
  void span(std::string_view name, milliseconds length, std::vector<std::pair<std::string, std::string>> attributes, bool failed) const {
    if (services.tracer == nullptr || !trace.sampled) return;
    attributes.emplace_back("fixpoint.session", stamped.session);
    services.tracer->finish({.context = child_of(trace), .parent_span_id = trace.span_id, .name = text(name),
                             .begin = stamped.at - length, .end = stamped.at, .attributes = std::move(attributes), .failed = failed});
  }

  void operator()(const agent::SessionStarted&) const {
    metrics.counter("agent_sessions_total", "Agent sessions that have begun.").add();
    log("session_started", "");
  }
  void operator()(const agent::RoundStarted& round) const {
    metrics.counter("agent_rounds_total", "Rounds of agent loops by purpose and writer.",
                    {{"purpose", text(to_string(round.purpose))}, {"writer", text(to_string(round.writer))}}).add();
    log("round_started", to_string(round.purpose));
  }
  void operator()(const agent::Generated& it) const {
    services.admission->spend(who, it.usage.completion_tokens, milliseconds(0));
    metrics.counter("agent_tokens_total", "Tokens that models wrote for agent loops.").add(static_cast<std::uint64_t>(it.usage.completion_tokens));
    metrics.counter("agent_cached_tokens_total", "Prompt tokens of agent loops that came from the prefix cache.")
        .add(static_cast<std::uint64_t>(it.usage.cached_tokens));
    metrics.histogram("agent_generation_seconds", "Time of one generation.", kLatencySeconds).observe(seconds(it.cost.wall));
    span("generate", it.cost.wall, {{"gen_ai.usage.output_tokens", std::to_string(it.usage.completion_tokens)}}, false);
  }
  void operator()(const agent::GenerationFailed& it) const {
    services.admission->spend(who, it.usage.completion_tokens, milliseconds(0));
    metrics.counter("agent_generation_failures_total", "Generations that failed, by kind.", {{"kind", text(to_string(it.kind))}}).add();
    span("generate", it.cost.wall, {{"error.type", text(to_string(it.kind))}}, true);
    log("generation_failed", to_string(it.kind));
  }
  void operator()(const agent::CheckStarted&) const {
    metrics.counter("sandbox_launches_total", "Checks that were begun in the sandbox.").add();
  }
  void operator()(const agent::Checked& it) const {
    services.admission->spend(who, 0, it.cost.sandbox);
    const auto status = to_string(it.judgement.status);
    metrics.counter("agent_verdicts_total", "Verdicts over programs.", {{"status", text(status)}}).add();
    metrics.histogram("sandbox_seconds", "Time that one check used the sandbox.", kLatencySeconds).observe(seconds(it.judgement.sandbox));
    span("check", it.cost.wall, {{"fixpoint.verdict", text(status)}}, false);
    log("checked", status);
  }
  void operator()(const agent::CheckFailed& it) const {
    services.admission->spend(who, 0, it.cost.sandbox);
    metrics.counter("agent_check_failures_total", "Checks that could not be made.").add();
    log("check_failed", "");
  }
  void operator()(const agent::Stuck& it) const {
    metrics.counter("agent_stuck_total", "Times that a loop saw that asking on would not help.", {{"reason", text(to_string(it.reason))}}).add();
  }
  void operator()(const agent::Climbed& it) const {
    metrics.counter("agent_escalations_total", "Rungs of the ladder that were taken.", {{"rung", text(to_string(it.kind))}}).add();
    log("climbed", to_string(it.kind));
  }
  void operator()(const agent::Ended& it) const {
    metrics.counter("agent_turns_total", "Turns that ended, by outcome.", {{"outcome", text(to_string(it.outcome))}}).add();
    metrics.counter("agent_budget_rounds_total", "Repair rounds spent by turns that ended.").add(static_cast<std::uint64_t>(std::max(0, it.spent.rounds)));
    if (it.outcome == agent::Outcome::budget_exhausted) metrics.counter("agent_budgets_exhausted_total", "Turns that ended because a budget did.").add();
    span("turn", it.spent.wall, {{"fixpoint.outcome", text(to_string(it.outcome))}}, it.outcome == agent::Outcome::failed);
    log("turn_ended", to_string(it.outcome), it.detail);
  }
  void operator()(const agent::HintGiven&) const { log("hint_given", ""); }
  void operator()(const agent::ProgramSubmitted&) const { log("program_submitted", ""); }
  void operator()(const agent::Declined&) const { log("declined", ""); }
  // The rest is told by what follows it.
  void operator()(const agent::GenerationStarted&) const {}
  void operator()(const agent::TextDelta&) const {}
  void operator()(const agent::Explained&) const {}
  void operator()(const agent::ProgramWritten&) const {}
  void operator()(const agent::TestsWritten&) const {}
  void operator()(const agent::Scored&) const {}
  void operator()(const agent::Resumed&) const {}
};

}  // namespace

void record(const Services& services, const Principal& who, const TraceContext& trace, const agent::Stamped& stamped) {
  std::visit(Recorder{services, who, trace, stamped}, stamped.event);
}

}  // namespace fixpoint::server
