#include "server/acp_updates.h"

#include <chrono>

#include "agent/prompt.h"
#include "server/jsonrpc.h"
#include "server/prompt_task.h"

namespace fixpoint::server {
namespace {

using jsonrpc::Json;

constexpr const char* kThought = "agent_thought_chunk";
constexpr const char* kMessage = "agent_message_chunk";

std::string plural(std::int64_t count, const std::string& word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); }

std::string spaced(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = c == '_' ? ' ' : c;
  return text;
}

Json amounts(const agent::Amounts& it) {
  return {{"rounds", it.rounds}, {"tokens", it.tokens}, {"wallMs", it.wall.count()}, {"sandboxMs", it.sandbox.count()}};
}

Json text_content(std::string_view text) {
  return {{"type", "content"}, {"content", {{"type", "text"}, {"text", text}}}};
}

/// A fence that the program itself does not close.
std::string fenced(const std::string& program, const std::string& language) {
  std::string fence = "```";
  while (program.find(fence) != std::string::npos) fence += '`';
  return fence + language + "\n" + program + (program.ends_with('\n') ? "" : "\n") + fence;
}

std::string verdict(const agent::Judgement& judgement) {
  if (judgement.status == agent::CheckStatus::passed && judgement.total == 0) return "the program loads; there are no tests";
  std::string text = spaced(to_string(judgement.status));
  if (judgement.total > 0) text += ": " + std::to_string(judgement.passed) + " of " + plural(judgement.total, "test") + " passed";
  return text;
}

std::string verdict_details(const agent::Judgement& judgement) {
  std::string text = verdict(judgement);
  for (const agent::FailedTest& failed : judgement.failures) {
    text += "\n\n" + agent::bounded(failed.test.empty() ? "input: " + failed.input : failed.test, 2'000);
    if (!failed.expected.empty()) text += "\nexpected " + agent::bounded(failed.expected, 2'000);
    if (!failed.error.empty()) {
      text += "\nraised " + agent::bounded(failed.error, 2'000);
    } else if (!failed.actual.empty()) {
      text += "\ngot " + agent::bounded(failed.actual, 2'000);
      if (!failed.difference.empty()) text += "\ndifference: " + failed.difference;
    }
  }
  if (judgement.failures.empty() && !judgement.message.empty()) text += "\n\n" + agent::bounded(judgement.message, 4'000);
  return text;
}

/// The judgement with the names that the journal gives its fields.
Json raw(const agent::Event& event, const char* field) {
  const Json json = Json::parse(agent::to_json(event), nullptr, false);
  return json.is_object() && json.contains(field) ? json[field] : Json(nullptr);
}

}  // namespace

std::string render_update(std::string_view session, const Update& update, std::int64_t from) {
  std::string body = update.body;
  if (body.empty()) {
    body = R"({"sessionUpdate":")" + update.kind + R"(","content":{"type":"text","text":)" + jsonrpc::quoted(update.text) + R"(},"messageId":)" +
           jsonrpc::quoted(update.message) + "}";
  }
  std::string json = R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":)" + jsonrpc::quoted(session) + R"(,"update":)" + body;
  if (update.seq > 0) {
    json += R"(,"_meta":{"fixpoint":{"seq":)" + std::to_string(update.seq);
    if (from < update.seq) json += R"(,"from":)" + std::to_string(from);
    json += "}}";
  }
  return json + "}}";
}

Projection::Projection(const TurnRecord& turn, int number, std::string cwd, std::int64_t last_seq)
    : turn_(turn), number_(number), cwd_(std::move(cwd)), last_seq_(last_seq) {}

std::vector<SharedUpdate> Projection::apply(const agent::Stamped& stamped) {
  progress_.apply(stamped.event);
  last_event_ = stamped.seq;
  made_ = stamped.made;
  std::visit([this](const auto& event) { on(event); }, stamped.event);
  return std::exchange(out_, {});
}

std::string Projection::best_program() const {
  const agent::Round* best = progress_.best();
  return best == nullptr ? std::string() : best->program;
}

std::string Projection::file() const {
  if (!turn_.file.empty()) return turn_.file;
  return cwd_ + (cwd_.ends_with('/') ? "" : "/") + default_file_name(progress_.task.language);
}

std::string Projection::id(const std::string& what) const { return "t" + std::to_string(number_) + "-" + what; }

std::string Projection::message_of(int attempt) const {
  return id("answer" + std::to_string(attempt + 1) + (tries_ > 0 ? "." + std::to_string(tries_) : ""));
}

void Projection::text(const char* kind, const std::string& message, std::string words, bool echo) {
  auto update = std::make_shared<Update>();
  update->seq = ++last_seq_;
  update->made = made_;
  update->echo = echo;
  update->kind = kind;
  update->message = message;
  update->text = std::move(words);
  out_.push_back(std::move(update));
}

void Projection::body(std::string json) {
  auto update = std::make_shared<Update>();
  update->seq = ++last_seq_;
  update->made = made_;
  update->body = std::move(json);
  out_.push_back(std::move(update));
}

void Projection::note(const std::string& words) { text(kThought, id("note" + std::to_string(++notes_)), words + "\n"); }

void Projection::plan() {
  Json entries = Json::array();
  for (const PlanEntry& entry : plan_) entries.push_back({{"content", entry.text}, {"priority", "medium"}, {"status", entry.status}});
  body(jsonrpc::dump({{"sessionUpdate", "plan"}, {"entries", std::move(entries)}}));
}

void Projection::end_phases() {
  for (PlanEntry& entry : plan_) {
    if (entry.status == std::string_view("in_progress")) entry.status = "completed";
  }
}

/// The phase that was announced is under way; one that was not is added.
void Projection::begin_phase(std::string words) {
  end_phases();
  if (!plan_.empty() && plan_.back().status == std::string_view("pending") && plan_.back().text == words) {
    plan_.back().status = "in_progress";
  } else {
    plan_.push_back({std::move(words), "in_progress"});
  }
  plan();
}

void Projection::on(const agent::SessionStarted& event) {
  text("user_message_chunk", id("task"), event.task.statement, true);
  body(jsonrpc::dump({{"sessionUpdate", "session_info_update"}, {"title", title(event.task)}}));
}

void Projection::on(const agent::RoundStarted& event) {
  std::string words;
  switch (event.purpose) {
    case agent::Purpose::own_tests: words = "Write tests"; break;
    case agent::Purpose::explanation: words = "Explain the failure"; break;
    case agent::Purpose::review: words = "Review the program"; break;
    case agent::Purpose::hand: words = "Take a person's program"; break;
    case agent::Purpose::repair: words = "Explain and repair"; break;
    case agent::Purpose::draft:
      words = event.drafts > 1 ? "Generate " + plural(event.drafts, "first draft") : event.number > 0 ? "Generate another draft" : "Generate a first draft";
      break;
  }
  if (event.writer == agent::Writer::specialist) words += ", by the specialist";
  if (event.again) words += ", once more";
  if (event.number > 0) words = "Round " + std::to_string(event.number) + ": " + words;
  begin_phase(std::move(words));
}

void Projection::on(const agent::GenerationStarted&) {}

void Projection::on(const agent::TextDelta& event) {
  streamed_.insert(event.attempt);
  text(kThought, message_of(event.attempt), event.text);
}

void Projection::on(const agent::Generated& event) {
  const std::int64_t used = progress_.spent.tokens;
  const Json usage{{"sessionUpdate", "usage_update"},
                   {"used", progress_.usage.completion_tokens},
                   {"size", std::max(used, progress_.limits().tokens)},
                   {"_meta", {{"fixpoint", {{"promptTokens", progress_.usage.prompt_tokens},
                                            {"cachedTokens", progress_.usage.cached_tokens},
                                            {"completionTokens", progress_.usage.completion_tokens},
                                            {"attempt", event.attempt}}}}}};
  body(jsonrpc::dump(usage));
}

void Projection::on(const agent::GenerationFailed& event) {
  if (event.kind != agent::GenerateError::Kind::cancelled) note("No answer (" + spaced(to_string(event.kind)) + "): " + event.detail);
}

void Projection::on(const agent::Explained& event) {
  if (!streamed_.contains(event.attempt)) text(kThought, message_of(event.attempt), event.text);
}

void Projection::on(const agent::ProgramWritten&) {}  // shown when it is run, and at the end

void Projection::on(const agent::TestsWritten& event) { note(plural(static_cast<std::int64_t>(event.tests.size()), "test") + " written."); }

void Projection::on(const agent::CheckStarted& event) {
  const agent::Round& attempt = progress_.attempts[static_cast<std::size_t>(event.attempt)];
  const auto tests = static_cast<std::int64_t>(progress_.tests().size());
  const std::string words = tests > 0 ? "Run " + plural(tests, "test") : std::string("Run the program");
  begin_phase((attempt.number > 0 ? "Round " + std::to_string(attempt.number) + ": " : std::string()) + words);
  std::string before = turn_.before;
  if (attempt.ask.parent) before = progress_.attempts[static_cast<std::size_t>(*attempt.ask.parent)].program;
  open_run_ = id("run" + std::to_string(++runs_));
  Json diff{{"type", "diff"}, {"path", file()}, {"newText", attempt.program}};
  if (!before.empty()) diff["oldText"] = before;
  body(jsonrpc::dump({{"sessionUpdate", "tool_call"},
                      {"toolCallId", open_run_},
                      {"title", words},
                      {"kind", "execute"},
                      {"status", "in_progress"},
                      {"content", Json::array({std::move(diff)})},
                      {"locations", Json::array({Json{{"path", file()}}})},
                      {"rawInput", {{"attempt", event.attempt}, {"round", attempt.number}, {"language", progress_.task.language}, {"tests", tests}}}}));
}

void Projection::on(const agent::Checked& event) {
  const bool passed = event.judgement.status == agent::CheckStatus::passed;
  Json update{{"sessionUpdate", "tool_call_update"},
              {"toolCallId", open_run_},
              {"status", passed ? "completed" : "failed"},
              {"content", Json::array({text_content(verdict_details(event.judgement))})},
              {"rawOutput", raw(agent::Event(event), "judgement")}};
  open_run_.clear();
  body(jsonrpc::dump(update));
}

void Projection::on(const agent::CheckFailed& event) {
  close_run("failed", event.kind == agent::CheckError::Kind::cancelled ? "cancelled" : "the program could not be run: " + event.detail);
}

void Projection::close_run(const char* status, const std::string& detail) {
  if (open_run_.empty()) return;
  body(jsonrpc::dump({{"sessionUpdate", "tool_call_update"},
                      {"toolCallId", open_run_},
                      {"status", status},
                      {"content", Json::array({text_content(detail)})}}));
  open_run_.clear();
}

void Projection::on(const agent::Stuck& event) { note("Stuck: " + spaced(to_string(event.reason)) + "."); }

void Projection::on(const agent::Climbed& event) {
  std::string words = "Next: " + std::string(to_string(event.kind));
  if (event.grant.rounds > 0) words += ", " + plural(event.grant.rounds, "round") + " granted";
  note(words + ".");
}

void Projection::on(const agent::Scored& event) { note("Hidden tests: " + verdict(event.judgement) + "."); }

void Projection::on(const agent::Ended& event) {
  close_run("failed", "interrupted");
  const agent::Round* best = progress_.best();
  std::string words = std::string(1, static_cast<char>(std::toupper(to_string(event.outcome)[0]))) + spaced(to_string(event.outcome)).substr(1);
  words += ": " + event.detail + ".";
  if (best != nullptr && best->judgement && event.outcome != agent::Outcome::solved) words += " The best program so far: " + verdict(*best->judgement) + ".";
  const bool has_program = best != nullptr && !best->program.empty();
  if (has_program) words += "\n\n" + fenced(best->program, progress_.task.language) + "\n";
  text(kMessage, id("end" + std::to_string(++notes_)), std::move(words));
  if (has_program) {
    Json diff{{"type", "diff"}, {"path", file()}, {"newText", best->program}};
    if (!turn_.before.empty()) diff["oldText"] = turn_.before;
    body(jsonrpc::dump({{"sessionUpdate", "tool_call"},
                        {"toolCallId", id("edit" + std::to_string(notes_))},
                        {"title", "Proposed " + std::string(file_name(file()))},
                        {"kind", "edit"},
                        {"status", "completed"},
                        {"content", Json::array({std::move(diff)})},
                        {"locations", Json::array({Json{{"path", file()}}})}}));
  }
  end_phases();
  if (!plan_.empty()) plan();
  Json turn{{"turn", number_},
            {"outcome", to_string(event.outcome)},
            {"basis", to_string(event.basis)},
            {"detail", event.detail},
            {"spent", amounts(event.spent)},
            {"left", amounts(event.left)}};
  if (!event.escalation.empty()) turn["escalation"] = event.escalation;
  if (event.best) turn["best"] = *event.best;
  body(jsonrpc::dump({{"sessionUpdate", "session_info_update"}, {"_meta", {{"fixpoint", {{"turnEnded", std::move(turn)}}}}}}));
}

void Projection::on(const agent::Resumed&) {
  ++tries_;
  close_run("failed", "interrupted");
  note("Going on.");
}

void Projection::on(const agent::HintGiven& event) {
  std::string words = event.text.empty() ? "A person lets it go on" : "Hint from " + event.by + ": " + event.text;
  if (event.grant.rounds > 0) words += " (" + plural(event.grant.rounds, "round") + " granted)";
  note(words);
}

void Projection::on(const agent::ProgramSubmitted& event) { note("Program from " + event.by + "."); }
void Projection::on(const agent::Declined& event) { note("Declined by " + event.by + ": " + event.reason); }

}  // namespace fixpoint::server
