#include "agent/replay.h"

#include <deque>
#include <map>

#include "agent/detail/plan.h"
#include "agent/progress.h"
#include "agent/prompt.h"

namespace fixpoint::agent {
namespace {

constexpr std::size_t kShownBytes = 600;

class Replay {
 public:
  ReplayReport run(std::span<const Stamped> events) {
    for (const Stamped& stamped : events) {
      if (stamped.seq != report_.events + 1) return stop(stamped, "event " + std::to_string(report_.events + 1) + " is missing");
      std::visit([this](const auto& event) { check(event); }, stamped.event);
      if (!difference_.empty()) return stop(stamped, difference_);
      progress_.apply(stamped.event);
      ++report_.events;
    }
    if (!derived_.empty()) report_.difference = "the record ends before what follows from its last answer";
    return report_;
  }

 private:
  ReplayReport stop(const Stamped& at, const std::string& why) {
    report_.difference = "event " + std::to_string(at.seq) + " (" + std::string(kind_of(at.event)) + "): " + why;
    return report_;
  }

  void expect(const Event& recorded, const Event& replayed) {
    ++report_.decisions;
    const std::string a = to_json(recorded), b = to_json(replayed);
    if (a != b) difference_ = "recorded " + bounded(a, kShownBytes) + ", replayed " + bounded(b, kShownBytes);
  }

  [[nodiscard]] Amounts left() const {
    Amounts left = progress_.limits() - progress_.spent;
    left.rounds = std::max(left.rounds, 0);
    left.tokens = std::max<std::int64_t>(left.tokens, 0);
    left.wall = std::max(left.wall, std::chrono::milliseconds(0));
    left.sandbox = std::max(left.sandbox, std::chrono::milliseconds(0));
    return left;
  }
  /// What a batch had left is known only from the record.
  [[nodiscard]] Amounts left(const Amounts& recorded) const { return progress_.in_batch ? recorded : left(); }

  template <class S>
  std::optional<S> step(const Amounts& budget) {
    Step next = next_step(progress_, budget);
    if (S* it = std::get_if<S>(&next)) return std::move(*it);
    difference_ = "another step follows from the record";
    return std::nullopt;
  }

  // What came from outside is taken as it is.
  void check(const SessionStarted& event) {
    if (event.prompt_version != kPromptVersion) {
      difference_ = "recorded with prompts of edition " + event.prompt_version + "; this program has " + std::string(kPromptVersion);
    }
  }
  void check(const TextDelta& event) { written_[event.attempt] += event.text; }
  void check(const Generated& event) {
    if (written_[event.attempt] != event.text) difference_ = "the streamed pieces are not the text";
    for (Event& it : detail::read_answer(progress_, event)) derived_.push_back(std::move(it));
  }
  void check(const GenerationFailed&) {}
  void check(const Checked&) {}
  void check(const CheckFailed&) {}
  void check(const Scored&) {}
  void check(const Resumed&) { written_.clear(); }  // unfinished text is written anew
  void check(const HintGiven&) {}
  void check(const ProgramSubmitted&) {}
  void check(const Declined&) {}

  // What an answer means.
  template <class E>
  void check_derived(const E& event) {
    if (derived_.empty()) {
      difference_ = "nothing that was written says so";
      return;
    }
    expect(event, derived_.front());
    derived_.pop_front();
  }
  void check(const Explained& event) { check_derived(event); }
  void check(const ProgramWritten& event) { check_derived(event); }
  void check(const TestsWritten& event) { check_derived(event); }

  // What the loop decided.
  void check(const RoundStarted& event) {
    if (const auto next = step<StartRound>(left(event.left))) expect(event, detail::round_started(progress_, *next, left(event.left)));
  }
  void check(const GenerationStarted& event) {
    if (!step<Generate>(progress_.in_batch ? kUnlimited : left())) return;
    ++report_.prompts;
    expect(event, detail::generation_started(progress_, static_cast<int>(progress_.attempts.size()), event.draft, event.ask.max_tokens));
  }
  void check(const CheckStarted& event) {
    if (const auto next = step<Check>(progress_.in_batch ? kUnlimited : left())) expect(event, CheckStarted{next->attempt});
  }
  void check(const Stuck& event) {
    if (const auto next = step<NoteStuck>(progress_.in_batch ? kUnlimited : left())) expect(event, Stuck{next->reason, next->attempt});
  }
  void check(const Climbed& event) {
    if (const auto next = step<Climb>(left(event.left))) expect(event, detail::climbed(progress_, *next, left(event.left)));
  }
  void check(const Ended& event) {
    // A cancel comes from outside; any other end follows.
    std::optional<End> next = event.outcome == Outcome::cancelled ? End{.outcome = Outcome::cancelled, .detail = event.detail}
                                                                  : step<End>(left(event.left));
    if (!next) return;
    Ended replayed = detail::ended(progress_, *next, left(event.left));
    replayed.escalation = event.escalation;  // a random name
    expect(event, replayed);
  }

  Progress progress_;
  std::map<int, std::string> written_;
  std::deque<Event> derived_;
  std::string difference_;
  ReplayReport report_;
};

}  // namespace

ReplayReport replay(std::span<const Stamped> events) { return Replay().run(events); }

}  // namespace fixpoint::agent
