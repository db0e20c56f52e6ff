#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/detail/mailbox.h"
#include "agent/journal.h"
#include "agent/loop.h"

namespace fixpoint::agent::detail {

/// One turn of a session: from where its events leave it to the next end. Lives on one thread; generations run on threads
/// of their own and hand their text over through a mailbox.
class Turn {
 public:
  Turn(const Services& services, Budget* batch, std::stop_token stop, const OnEvent& on_event);

  /// A new session.
  [[nodiscard]] tl::expected<void, LoopError> begin(const std::string& session, SessionStarted started);
  /// A recorded one: its events are folded, nothing is announced.
  [[nodiscard]] tl::expected<void, LoopError> recall(const std::string& session, const std::vector<Stamped>& events);

  /// The round loop.
  [[nodiscard]] tl::expected<Result, LoopError> run();

 private:
  using Done = tl::expected<void, LoopError>;

  [[nodiscard]] Done perform(const StartRound& step);
  [[nodiscard]] Done perform(const Generate& step);
  [[nodiscard]] Done perform(const Check& step);
  [[nodiscard]] Done perform(const NoteStuck& step);
  [[nodiscard]] Done perform(const Climb& step);
  [[nodiscard]] Done perform(const End& step);

  /// Journal, then progress and budget, then whoever listens: the one way in which anything happens.
  [[nodiscard]] Done commit(std::vector<Event> events, Budget::Reservation* reservation = nullptr);
  [[nodiscard]] Done score();
  [[nodiscard]] Done receive(Mailbox& mailbox, std::size_t expected, Budget::Reservation& reservation);
  void add_result(Mailbox::Letter& letter, std::chrono::milliseconds& charged, std::vector<Event>& events) const;
  [[nodiscard]] std::vector<int> attempts_for(const Generate& step, std::int64_t max_tokens, std::vector<Event>& started) const;
  [[nodiscard]] GenerateRequest request_for(int attempt, const Amounts& granted) const;
  [[nodiscard]] Amounts left() const { return budget_->left(); }
  [[nodiscard]] Generator* writer(Writer role) const;

  Services services_;
  Budget* batch_;
  std::stop_token stop_;
  const OnEvent& on_event_;
  std::string session_;
  std::int64_t last_seq_ = 0;
  Progress progress_;
  std::unique_ptr<Budget> budget_;  // of the task
};

}  // namespace fixpoint::agent::detail
