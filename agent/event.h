#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "agent/escalation.h"
#include "agent/round.h"
#include "agent/task.h"

namespace fixpoint::agent {

/// What happened in a session, in order. Progress (agent/progress.h) is a fold over these and over nothing else; those
/// without a state of their own (TextDelta) may be merged on the way to a slow reader.
struct SessionStarted {
  Task task;
  LoopOptions options;
  std::string prompt_version;
  bool in_batch = false;  ///< a batch's budget stands above the task's
  std::string model, specialist, explainer;  ///< names; empty where there is none
};
struct RoundStarted {
  int number = 0;  ///< one more than the last, if the round is a repair that the budget counts
  int drafts = 1;  ///< generations that belong to it
  Purpose purpose = Purpose::draft;
  Writer writer = Writer::model;
  std::optional<int> parent;  ///< the attempt that it repairs or explains
  bool heated = false;        ///< at the branch temperature
  bool add_trace = false;
  bool whole_history = true;
  bool uses_rung = false;     ///< counts against the rung's attempts
  std::optional<int> again;   ///< the same question as this attempt's, whose program had been tried before
  Amounts cost;               ///< the round itself
  Amounts left;               ///< of the budget, before it
};
struct GenerationStarted {
  int attempt = 0;
  int number = 0;
  int draft = 0;
  Ask ask;
};
struct TextDelta {
  int attempt = 0;
  std::string text;
};
struct Generated {
  int attempt = 0;
  std::string text;
  Finish finish = Finish::stop;
  Usage usage;
  Amounts cost;
};
struct GenerationFailed {
  int attempt = 0;
  GenerateError::Kind kind = GenerateError::Kind::unavailable;
  std::string detail;
  Usage usage;
  Amounts cost;
};
struct Explained {
  int attempt = 0;
  std::string text;
};
struct ProgramWritten {
  int attempt = 0;
  std::string program;
  ExtractKind kind = ExtractKind::none;
};
/// Tests that the model wrote itself; they stand in for given ones that are missing.
struct TestsWritten {
  int attempt = 0;
  std::vector<Test> tests;
};
struct CheckStarted {
  int attempt = 0;
};
struct Checked {
  int attempt = 0;
  Judgement judgement;
  Amounts cost;
};
struct CheckFailed {
  int attempt = 0;
  CheckError::Kind kind = CheckError::Kind::infrastructure;
  std::string detail;
  Amounts cost;
};
/// The loop sees that asking on would not help.
struct Stuck {
  StuckReason reason = StuckReason::same_program;
  int attempt = 0;
};
/// The next rung of the ladder was taken; `grant` was added to the budget by the operator's configuration.
struct Climbed {
  int rung = 0;
  RungKind kind = RungKind::branch;
  Amounts grant;
  Amounts left;
};
struct Scored {
  int attempt = 0;
  Judgement judgement;  ///< of the hidden tests
};
/// The end of a turn: there is always exactly one, and it names the best attempt.
struct Ended {
  Outcome outcome = Outcome::failed;
  Basis basis = Basis::none;
  std::optional<int> best;  ///< attempt
  std::string detail;       ///< one sentence for people
  std::string escalation;   ///< its id, where handed over
  Amounts spent;
  Amounts left;
  Usage usage;
};
/// A turn goes on: after a crash or a cancel, or because somebody came back.
struct Resumed {};
struct HintGiven {
  std::string by;
  std::string text;
  Amounts grant;
};
struct ProgramSubmitted {
  std::string by;
  std::string program;
  Amounts grant;  ///< for its check
};
struct Declined {
  std::string by;
  std::string reason;
};

using Event = std::variant<SessionStarted, RoundStarted, GenerationStarted, TextDelta, Generated, GenerationFailed, Explained,
                           ProgramWritten, TestsWritten, CheckStarted, Checked, CheckFailed, Stuck, Climbed, Scored, Ended,
                           Resumed, HintGiven, ProgramSubmitted, Declined>;

/// An event of a session, as it stands in the journal.
struct Stamped {
  std::string session;
  std::int64_t seq = 0;  ///< 1, 2, … within the session, without gaps
  std::chrono::sys_time<std::chrono::milliseconds> at{};
  Event event;
  std::chrono::steady_clock::time_point made{};  ///< before it was written; nothing where it was read from the journal
};

/// "text_delta", "checked", …: the name in JSON.
[[nodiscard]] std::string_view kind_of(const Event& event);
/// What the budget is charged for the event; most cost nothing.
[[nodiscard]] Amounts cost_of(const Event& event);
/// One JSON object: {"type": …, …fields}. parse_event(to_json(e)) gives e.
[[nodiscard]] std::string to_json(const Event& event);
/// The same with "session", "seq" and "at_ms": one line of `--json` and of an export.
[[nodiscard]] std::string to_json(const Stamped& stamped);
[[nodiscard]] tl::expected<Event, std::string> parse_event(std::string_view json);
[[nodiscard]] tl::expected<Stamped, std::string> parse_stamped(std::string_view json);

}  // namespace fixpoint::agent
