#include <map>
#include <nlohmann/json.hpp>

#include "evals/detail/rows.h"
#include "evals/loop_workload.h"

namespace fixpoint::evals {
namespace {

using nlohmann::json;
using detail::Row;

constexpr double kMostTokens = 1 << 20;
constexpr double kMostThinkMs = 24.0 * 3'600'000;

std::string line_of(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

/// A whole number in [least, most].
tl::expected<std::int64_t, DataError> whole_number(const Row& row, std::string_view field, double least, double most) {
  const auto value = row.number(field);
  if (!value) return tl::unexpected(value.error());
  const auto whole = static_cast<std::int64_t>(*value >= least && *value <= most ? *value : -1);
  if (whole < 0 || static_cast<double>(whole) != *value) {
    return tl::unexpected(row.error(field, "must be a whole number from " + std::to_string(static_cast<std::int64_t>(least)) + " to " +
                                               std::to_string(static_cast<std::int64_t>(most))));
  }
  return whole;
}

struct Placed {
  std::string session;
  std::int64_t number = 0;
  LoopRound round;
};

tl::expected<Placed, DataError> round_of(const Row& row) {
  const auto session = row.text("session", true);
  if (!session) return tl::unexpected(session.error());
  const auto number = whole_number(row, "round", 0, kMostTokens);
  if (!number) return tl::unexpected(number.error());
  const auto ask = row.text("ask");
  if (!ask) return tl::unexpected(ask.error());
  const auto attempt = row.text("attempt");
  if (!attempt) return tl::unexpected(attempt.error());
  const auto tokens = whole_number(row, "tokens", 1, kMostTokens);
  if (!tokens) return tl::unexpected(tokens.error());
  const auto think = whole_number(row, "think_ms", 0, kMostThinkMs);
  if (!think) return tl::unexpected(think.error());
  return Placed{*session, *number, {*ask, *attempt, *tokens, std::chrono::milliseconds(*think)}};
}

}  // namespace

std::string to_trace(const LoopWorkload& workload) {
  std::string out = line_of({{"fixpoint_loop_trace", 1}, {"shared", workload.shared}});
  for (const LoopSession& session : workload.sessions) {
    for (std::size_t i = 0; i < session.rounds.size(); ++i) {
      const LoopRound& round = session.rounds[i];
      out += line_of({{"session", session.id}, {"round", i}, {"ask", round.ask}, {"attempt", round.attempt}, {"tokens", round.tokens},
                      {"think_ms", round.think.count()}});
    }
  }
  return out;
}

tl::expected<LoopWorkload, DataError> parse_trace(std::string_view text, const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto rows = detail::parse_rows(text, name);
  if (!rows) return tl::unexpected(rows.error());
  LoopWorkload workload;
  const Row& head = rows->front();
  const auto version = head.number("fixpoint_loop_trace");
  if (!version) return tl::unexpected(version.error());
  if (*version != 1) return tl::unexpected(head.error("fixpoint_loop_trace", "is another version than 1"));
  auto shared = head.text_or_empty("shared");
  if (!shared) return tl::unexpected(shared.error());
  workload.shared = *std::move(shared);
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 1; i < rows->size(); ++i) {
    auto placed = round_of((*rows)[i]);
    if (!placed) return tl::unexpected(placed.error());
    const auto [found, is_new] = index.emplace(placed->session, workload.sessions.size());
    if (is_new) workload.sessions.push_back({.id = placed->session, .rounds = {}});
    std::vector<LoopRound>& rounds = workload.sessions[found->second].rounds;
    if (placed->number != static_cast<std::int64_t>(rounds.size())) {
      return tl::unexpected((*rows)[i].error("round", "is " + std::to_string(placed->number) + "; the next of session '" + placed->session + "' is " +
                                                          std::to_string(rounds.size())));
    }
    rounds.push_back(std::move(placed->round));
  }
  if (workload.sessions.empty()) return tl::unexpected(DataError{name, 0, "", "has no rounds"});
  for (const LoopSession& session : workload.sessions) {
    if ((workload.shared + session.rounds.front().ask).empty()) {
      return tl::unexpected(DataError{name, 0, "", "session '" + session.id + "' begins with an empty prompt"});
    }
  }
  return workload;
}

tl::expected<LoopWorkload, DataError> load_trace(const std::filesystem::path& file) {
  const auto bytes = detail::read_file(file);
  if (!bytes) return tl::unexpected(bytes.error());
  return parse_trace(*bytes, file);
}

}  // namespace fixpoint::evals
