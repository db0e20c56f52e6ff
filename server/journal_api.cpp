#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "agent/handover.h"
#include "agent/journal.h"
#include "agent/progress.h"
#include "server/api.h"
#include "server/detail/json_response.h"
#include "server/event_log.h"
#include "server/json_reader.h"
#include "server/metrics.h"
#include "server/tenancy.h"

namespace fixpoint::server::handlers {
namespace {

using nlohmann::json;

constexpr int kMaxPage = 200;
constexpr int kMaxLooks = 50;  ///< pages of the journal that one request reads, where most of it is other tenants'

HttpResponse journal_error(const agent::JournalError& error) {
  using Kind = agent::JournalError::Kind;
  switch (error.kind) {
    case Kind::unknown: return ApiError{.status = 404, .message = error.detail, .code = "unknown"}.response();
    case Kind::conflict: return ApiError{.status = 409, .message = error.detail, .code = "conflict"}.response();
    case Kind::busy: return ApiError{.status = 503, .message = error.detail, .code = "busy", .retry_after = std::chrono::seconds(1)}.response();
    default: return ApiError{.status = 500, .message = error.detail, .code = "journal"}.response();
  }
}

/// What isn't the tenant's doesn't exist for it.
HttpResponse unknown(std::string_view what, const std::string& id) {
  return ApiError{.status = 404, .message = "there is no " + std::string(what) + " '" + id + "'", .code = "unknown"}.response();
}

json session_json(const agent::SessionRow& row) {
  return {{"id", row.id},       {"title", row.title},       {"language", row.language},
          {"model", row.model}, {"state", row.state},       {"last_seq", row.last_seq},
          {"created_ms", row.created.time_since_epoch().count()}, {"updated_ms", row.updated.time_since_epoch().count()}};
}

json escalation_json(const agent::EscalationRow& row) {
  return {{"id", row.id},       {"session", row.session},       {"state", agent::to_string(row.state)},
          {"title", row.title}, {"claimed_by", row.claimed_by}, {"created_ms", row.created.time_since_epoch().count()},
          {"updated_ms", row.updated.time_since_epoch().count()}};
}

/// A whole number in the query, or the default; an error names it.
tl::expected<std::int64_t, ApiError> number(const HttpRequest& request, std::string_view name, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
  const auto text = request.query_value(name);
  if (!text) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high) {
    return tl::unexpected(ApiError{.message = std::string(name) + ": must be an integer from " + std::to_string(low) + " to " + std::to_string(high),
                                   .param = std::string(name)});
  }
  return value;
}

/// One page of rows that the caller may see. `load(limit, cursor)` gives rows of all tenants, `whose` a row's session.
template <class Load, class Whose, class ToJson>
HttpResponse page(const HttpRequest& request, Load load, Whose whose, ToJson to_json) {
  const auto limit = number(request, "limit", 20, 1, kMaxPage);
  if (!limit) return limit.error().response();
  std::string cursor(request.query_value("cursor").value_or(""));
  json data = json::array();
  bool more = true;
  for (int look = 0; more && look < kMaxLooks && std::ssize(data) < *limit; ++look) {
    const auto rows = load(kMaxPage, cursor);
    if (!rows) return journal_error(rows.error());
    more = rows->size() == kMaxPage;
    for (const auto& row : *rows) {
      if (std::ssize(data) == *limit) {
        more = true;
        break;
      }
      cursor = row.id;
      if (may_see(request.who, whose(row))) data.push_back(to_json(row));
    }
  }
  return json_response({{"data", std::move(data)}, {"next_cursor", more ? json(cursor) : json()}});
}

/// The row, if it is the caller's to see.
tl::expected<agent::EscalationRow, HttpResponse> own_escalation(const HttpRequest& request, const Services& services) {
  const std::string& id = request.parameters[0];
  auto row = services.agent.journal->escalation(id);
  if (!row && row.error().kind != agent::JournalError::Kind::unknown) return tl::unexpected(journal_error(row.error()));
  if (!row || !may_see(request.who, row->session)) return tl::unexpected(unknown("escalation", id));
  return *std::move(row);
}

std::string person(const HttpRequest& request) { return request.who.token_id.empty() ? request.who.tenant : request.who.token_id; }

/// A person has decided: note it, and let the loop go on.
template <class Row>
HttpResponse decided(const HttpRequest& request, const Services& services, std::string_view what, const Row& row, bool go_on) {
  if (!row) return journal_error(row.error());
  services.metrics->counter("escalation_decisions_total", "What people did with escalations.", {{"action", std::string(what)}}).add();
  services.log->write("escalation", {{"escalation", row->id}, {"session", row->session}, {"tenant", request.who.tenant}, {"token", request.who.token_id},
                                     {"trace", request.trace.trace_id}, {"action", what}});
  if (go_on && services.resume_session) services.resume_session(tenant_of_session(row->session), row->session);
  return json_response(escalation_json(*row));
}

tl::expected<json, ApiError> body_or_empty(const HttpRequest& request) {
  if (request.body.empty()) return json::object();
  return parse_body(request.body);
}

struct Decision {
  std::string text;
  agent::Amounts grant;
};

/// `name` must be there; a grant may be: {"rounds", "tokens", "seconds"}.
tl::expected<Decision, ApiError> read_decision(const HttpRequest& request, std::string_view name, agent::Amounts grant) {
  const auto body = parse_body(request.body);
  if (!body) return tl::unexpected(body.error());
  JsonReader reader(*body);
  Decision decision{.grant = grant};
  reader.text(name, decision.text);
  if (decision.text.empty()) reader.fail(name, "must be a text that is not empty");
  if (const json* given = reader.find("grant"); given != nullptr) {
    if (!given->is_object()) {
      reader.fail("grant", "must be an object");
    } else {
      JsonReader inner(*given);
      std::int64_t seconds = grant.wall.count() / 1000;
      inner.integer("rounds", decision.grant.rounds, 0, agent::kMaxRounds);
      inner.integer("tokens", decision.grant.tokens, 1, 1'000'000);
      inner.integer("seconds", seconds, 1, 86'400);
      decision.grant.wall = decision.grant.sandbox = std::chrono::seconds(seconds);
      if (inner.failed()) reader.fail("grant", inner.error().message);
    }
  }
  if (reader.failed()) return tl::unexpected(reader.error());
  return decision;
}

constexpr agent::Amounts kHintGrant{.rounds = 3, .tokens = 8'192, .wall = std::chrono::minutes(5), .sandbox = std::chrono::minutes(5)};
constexpr agent::Amounts kCheckGrant{.rounds = 0, .tokens = 1, .wall = std::chrono::minutes(5), .sandbox = std::chrono::minutes(5)};

}  // namespace

Answer sessions(const HttpRequest& request, const Services& services, std::function<void()>) {
  return page(
      request, [&](int limit, const std::string& cursor) { return services.agent.journal->sessions(limit, cursor); },
      [](const agent::SessionRow& row) { return row.id; }, session_json);
}

Answer session(const HttpRequest& request, const Services& services, std::function<void()>) {
  const std::string& id = request.parameters[0];
  const auto row = services.agent.journal->session(id);
  if (!row && row.error().kind != agent::JournalError::Kind::unknown) return journal_error(row.error());
  if (!row || !may_see(request.who, row->id)) return unknown("session", id);
  return json_response(session_json(*row));
}

Answer session_events(const HttpRequest& request, const Services& services, std::function<void()>) {
  const std::string& id = request.parameters[0];
  if (!may_see(request.who, id)) return unknown("session", id);
  const auto after = number(request, "after", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (!after) return after.error().response();
  const auto limit = number(request, "limit", 100, 1, 1000);
  if (!limit) return limit.error().response();
  const auto events = services.agent.journal->events(id, *after);
  if (!events) return journal_error(events.error());
  const std::size_t shown = std::min(events->size(), static_cast<std::size_t>(*limit));
  std::string data;
  for (std::size_t i = 0; i < shown; ++i) data += (i > 0 ? "," : "") + agent::to_json((*events)[i]);
  const std::string next = shown < events->size() ? std::to_string((*events)[shown - 1].seq) : "null";
  return HttpResponse{.body = R"({"data":[)" + data + R"(],"next_after":)" + next + "}"};
}

Answer escalations(const HttpRequest& request, const Services& services, std::function<void()>) {
  std::optional<agent::EscalationState> state;
  if (const auto name = request.query_value("state")) {
    state = agent::parse_escalation_state(*name);
    if (!state) return ApiError{.message = "state: must be open, claimed, returned, solved_by_hand or declined", .param = "state"}.response();
  }
  return page(
      request, [&](int limit, const std::string& cursor) { return services.agent.journal->escalations(state, limit, cursor); },
      [](const agent::EscalationRow& row) { return row.session; }, escalation_json);
}

Answer escalation(const HttpRequest& request, const Services& services, std::function<void()>) {
  const auto row = own_escalation(request, services);
  if (!row) return row.error();
  const auto events = services.agent.journal->events(row->session);
  if (!events) return journal_error(events.error());
  agent::Progress progress;
  for (const agent::Stamped& stamped : *events) progress.apply(stamped.event);
  json out = escalation_json(*row);
  out["handover"] = json::parse(agent::handover_json(progress));
  out["handover_markdown"] = agent::handover_markdown(progress);
  return json_response(out);
}

Answer claim(const HttpRequest& request, const Services& services, std::function<void()>) {
  const auto row = own_escalation(request, services);
  if (!row) return row.error();
  if (const auto body = body_or_empty(request); !body) return body.error().response();
  return decided(request, services, "claim", services.agent.journal->claim(row->id, person(request)), false);
}

Answer hint(const HttpRequest& request, const Services& services, std::function<void()>) {
  const auto row = own_escalation(request, services);
  if (!row) return row.error();
  const auto decision = read_decision(request, "text", kHintGrant);
  if (!decision) return decision.error().response();
  return decided(request, services, "hint",
                 services.agent.journal->give_hint(row->id, {.by = person(request), .text = decision->text, .grant = decision->grant}), true);
}

Answer submit(const HttpRequest& request, const Services& services, std::function<void()>) {
  const auto row = own_escalation(request, services);
  if (!row) return row.error();
  const auto decision = read_decision(request, "program", kCheckGrant);
  if (!decision) return decision.error().response();
  return decided(request, services, "submit",
                 services.agent.journal->submit(row->id, {.by = person(request), .program = decision->text, .grant = decision->grant}), true);
}

Answer decline(const HttpRequest& request, const Services& services, std::function<void()>) {
  const auto row = own_escalation(request, services);
  if (!row) return row.error();
  const auto decision = read_decision(request, "reason", {});
  if (!decision) return decision.error().response();
  return decided(request, services, "decline", services.agent.journal->decline(row->id, {.by = person(request), .reason = decision->text}), true);
}

}  // namespace fixpoint::server::handlers
