#include "server/acp_replies.h"

#include <ctime>

#include "server/acp.h"
#include "server/prompt_task.h"

namespace fixpoint::server::acp {
namespace {

std::string iso_time(std::chrono::sys_time<std::chrono::milliseconds> time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Json amounts(const agent::Amounts& it) {
  return {{"rounds", it.rounds}, {"tokens", it.tokens}, {"wallMs", it.wall.count()}, {"sandboxMs", it.sandbox.count()}};
}

Json select(const char* id, const char* name, const char* description, const std::string& current,
            std::vector<std::pair<std::string, std::string>> values) {
  Json options = Json::array();
  bool known = false;
  for (auto& [value, words] : values) {
    known = known || value == current;
    options.push_back({{"value", value}, {"name", words}});
  }
  if (!known) options.push_back({{"value", current}, {"name", current}});
  return {{"id", id}, {"name", name}, {"description", description}, {"type", "select"}, {"currentValue", current}, {"options", std::move(options)}};
}

Json option(const char* id, const std::string& name, const char* kind) { return {{"optionId", id}, {"name", name}, {"kind", kind}}; }

Json text_content(std::string_view text) { return {{"type", "content"}, {"content", {{"type", "text"}, {"text", text}}}}; }

}  // namespace

Json initialize_result(std::string_view version, const jsonrpc::Limits& limits) {
  return {{"protocolVersion", kProtocolVersion},
          {"agentCapabilities",
           {{"loadSession", true},
            {"promptCapabilities", {{"image", false}, {"audio", false}, {"embeddedContext", true}}},
            {"mcpCapabilities", {{"http", false}, {"sse", false}}},
            {"sessionCapabilities", {{"list", Json::object()}, {"resume", Json::object()}, {"close", Json::object()}}}}},
          {"authMethods", Json::array()},
          {"agentInfo", {{"name", "fixpoint"}, {"title", "Fixpoint"}, {"version", version}}},
          {"_meta", {{"fixpoint", {{"maxMessageBytes", limits.bytes}, {"maxNesting", limits.depth}}}}}};
}

Json modes(const SessionRecord& record) {
  const auto mode = [](const char* id, const char* name, const char* description) {
    return Json{{"id", id}, {"name", name}, {"description", description}};
  };
  return {{"currentModeId", record.mode},
          {"availableModes", Json::array({mode("ask", "Ask", "Asks before it writes the edited file."),
                                          mode("write", "Write", "Writes the edited file when the tests pass."),
                                          mode("propose", "Propose", "Only shows the difference.")})}};
}

Json config_options(const SessionRecord& record) {
  std::vector<std::pair<std::string, std::string>> rounds, drafts;
  for (int i = 0; i <= agent::kMaxRounds; ++i) rounds.emplace_back(std::to_string(i), std::to_string(i));
  for (const int n : {1, 2, 4, 8, 16}) drafts.emplace_back(std::to_string(n), std::to_string(n));
  return Json::array({select("rounds", "Repair rounds", "How often a program may be repaired.", record.rounds, rounds),
                      select("drafts", "First drafts", "How many first programs are written in parallel.", record.drafts, drafts),
                      select("feedback", "Feedback", "What a repair is told.", record.feedback,
                             {{"simple", "Only that it failed"},
                              {"unit_test", "Failing tests"},
                              {"unit_test+explanation", "Failing tests, and an explanation"},
                              {"unit_test+explanation+trace", "Failing tests, an explanation, and a trace"}}),
                      select("own_tests", "Own tests", "Where there are no tests, let the model write some.", record.own_tests,
                             {{"off", "Off"}, {"on", "On"}})});
}

Json session_result(const SessionRecord& record, std::int64_t last_seq, bool at_work, bool with_id) {
  Json result{{"modes", modes(record)},
              {"configOptions", config_options(record)},
              {"_meta", {{"fixpoint", {{"lastSeq", last_seq}, {"atWork", at_work}}}}}};
  if (with_id) result["sessionId"] = record.id;
  return result;
}

Json list_result(const std::vector<SessionRecord>& records, bool more) {
  Json sessions = Json::array();
  for (const SessionRecord& record : records) {
    Json entry{{"sessionId", record.id}, {"cwd", record.cwd}, {"updatedAt", iso_time(record.updated)},
               {"_meta", {{"fixpoint", {{"atWork", record.at_work}}}}}};
    if (!record.title.empty()) entry["title"] = record.title;
    sessions.push_back(std::move(entry));
  }
  Json result{{"sessions", std::move(sessions)}};
  if (more) result["nextCursor"] = records.back().id;
  return result;
}

std::string_view stop_reason(const agent::Ended& end) {
  switch (end.outcome) {
    case agent::Outcome::solved:
    case agent::Outcome::declined: return "end_turn";
    case agent::Outcome::cancelled: return "cancelled";
    case agent::Outcome::handed_over:
    case agent::Outcome::budget_exhausted:
    case agent::Outcome::stuck:
    case agent::Outcome::failed: break;
  }
  return end.left.tokens <= 0 ? "max_tokens" : "max_turn_requests";
}

Json outcome(const TurnEnd& end) {
  Json json{{"turn", end.turn}, {"lastSeq", end.seq}};
  if (end.end) {
    json["outcome"] = to_string(end.end->outcome);
    json["basis"] = to_string(end.end->basis);
    json["detail"] = end.end->detail;
    json["spent"] = amounts(end.end->spent);
    json["left"] = amounts(end.end->left);
    json["usage"] = {{"promptTokens", end.end->usage.prompt_tokens},
                     {"cachedTokens", end.end->usage.cached_tokens},
                     {"completionTokens", end.end->usage.completion_tokens}};
    if (!end.end->escalation.empty()) json["escalation"] = end.end->escalation;
  }
  if (!end.program.empty()) json["program"] = end.program;
  return json;
}

Json prompt_result(const TurnEnd& end, bool cancelled, bool written) {
  Json ours = outcome(end);
  if (written) ours["written"] = end.file;
  return {{"stopReason", cancelled ? "cancelled" : stop_reason(*end.end)}, {"_meta", {{"fixpoint", std::move(ours)}}}};
}

Json ask_for_decision(const TurnEnd& end, int more_rounds, bool specialist) {
  Json options = Json::array({option("more_rounds", "Grant " + std::to_string(more_rounds) + " more rounds", "allow_once")});
  if (specialist) options.push_back(option("specialist", "Ask the specialist", "allow_once"));
  if (!end.program.empty()) options.push_back(option("take_best", "Take the best program so far", "allow_once"));
  options.push_back(option("person", "Leave it to a person", "reject_once"));
  return {{"sessionId", end.session},
          {"toolCall", {{"toolCallId", "decide-" + end.end->escalation},
                        {"title", "No program passes the tests yet"},
                        {"kind", "other"},
                        {"status", "pending"},
                        {"content", Json::array({text_content(end.end->detail)})},
                        {"rawInput", {{"escalation", end.end->escalation}, {"spent", amounts(end.end->spent)}, {"left", amounts(end.end->left)}}}}},
          {"options", std::move(options)}};
}

Json ask_to_write(const TurnEnd& end, const std::string& before) {
  Json diff{{"type", "diff"}, {"path", end.file}, {"newText", end.program}};
  if (!before.empty()) diff["oldText"] = before;
  return {{"sessionId", end.session},
          {"toolCall", {{"toolCallId", "write-" + end.turn},
                        {"title", "Write " + std::string(file_name(end.file))},
                        {"kind", "edit"},
                        {"status", "pending"},
                        {"content", Json::array({std::move(diff)})},
                        {"locations", Json::array({Json{{"path", end.file}}})}}},
          {"options", Json::array({option("write", "Write the file", "allow_once"), option("always", "Write without asking from now on", "allow_always"),
                                   option("leave", "Leave the file as it is", "reject_once")})}};
}

}  // namespace fixpoint::server::acp
