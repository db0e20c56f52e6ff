#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/event.h"

namespace fixpoint::agent {

struct JournalError {
  enum class Kind : std::uint8_t { io, unknown, conflict, busy, corrupt, newer_schema };
  Kind kind = Kind::io;
  std::string detail;
};

struct SessionRow {
  std::string id;
  std::string title;
  std::string language;
  std::string model;
  std::string state;  ///< "running", or the outcome of its last end
  std::int64_t last_seq = 0;
  std::chrono::sys_time<std::chrono::milliseconds> created{};
  std::chrono::sys_time<std::chrono::milliseconds> updated{};
};

enum class EscalationState : std::uint8_t { open, claimed, returned, solved_by_hand, declined };
[[nodiscard]] std::string_view to_string(EscalationState state);
[[nodiscard]] std::optional<EscalationState> parse_escalation_state(std::string_view name);

struct EscalationRow {
  std::string id;
  std::string session;
  EscalationState state = EscalationState::open;
  std::string title;
  std::string claimed_by;
  std::chrono::sys_time<std::chrono::milliseconds> created{};
  std::chrono::sys_time<std::chrono::milliseconds> updated{};
};

/// A webhook message that was not delivered yet.
struct Delivery {
  std::int64_t id = 0;
  std::string escalation;
  std::string body;
  int attempts = 0;
};

/// Held by whoever runs a session; two can't. Let go when it dies, also by kill -9.
class SessionLock {
 public:
  explicit SessionLock(int fd) : fd_(fd) {}
  SessionLock(SessionLock&& other) noexcept;
  SessionLock& operator=(SessionLock&& other) noexcept;
  ~SessionLock();

 private:
  int fd_ = -1;
};

/// The append-only record of sessions and escalations: one SQLite file (WAL), shared by threads and processes. What
/// append() returned is in the file and survives kill -9 of this process at any point; with `sync_every_commit` it also
/// survives a power cut. Thread-safe.
class Journal {
 public:
  struct Options {
    bool sync_every_commit = false;
    std::chrono::milliseconds busy_timeout{5'000};
  };
  [[nodiscard]] static tl::expected<std::unique_ptr<Journal>, JournalError> open(const std::filesystem::path& file,
                                                                                 Options options);
  [[nodiscard]] static tl::expected<std::unique_ptr<Journal>, JournalError> open(const std::filesystem::path& file) {
    return open(file, Options{});
  }
  ~Journal();

  [[nodiscard]] tl::expected<SessionLock, JournalError> lock(const std::string& session);

  /// Writes events after `last_seq`, all or none. `conflict` if somebody else wrote there. A SessionStarted makes the
  /// session; an Ended that hands over makes its escalation (and, with a webhook configured, its message).
  [[nodiscard]] tl::expected<std::vector<Stamped>, JournalError> append(const std::string& session, std::int64_t last_seq,
                                                                        std::vector<Event> events);

  [[nodiscard]] tl::expected<std::vector<Stamped>, JournalError> events(const std::string& session,
                                                                        std::int64_t after_seq = 0) const;
  [[nodiscard]] tl::expected<SessionRow, JournalError> session(const std::string& id) const;
  /// Newest first, those created before `cursor` (an id) if one is given.
  [[nodiscard]] tl::expected<std::vector<SessionRow>, JournalError> sessions(int limit, const std::string& cursor = {}) const;

  [[nodiscard]] tl::expected<EscalationRow, JournalError> escalation(const std::string& id) const;
  [[nodiscard]] tl::expected<std::vector<EscalationRow>, JournalError> escalations(std::optional<EscalationState> state,
                                                                                   int limit,
                                                                                   const std::string& cursor = {}) const;
  /// Open -> claimed, or an error that names who has it.
  [[nodiscard]] tl::expected<EscalationRow, JournalError> claim(const std::string& id, const std::string& by);
  /// The person's answer: writes the event to the session, and the state that follows from it. The loop's resume() goes on.
  [[nodiscard]] tl::expected<EscalationRow, JournalError> give_hint(const std::string& id, HintGiven hint);
  [[nodiscard]] tl::expected<EscalationRow, JournalError> submit(const std::string& id, ProgramSubmitted program);
  [[nodiscard]] tl::expected<EscalationRow, JournalError> decline(const std::string& id, Declined declined);

  /// Whether a hand-over also leaves a message for the webhook.
  void enable_deliveries(bool on);
  [[nodiscard]] tl::expected<std::optional<Delivery>, JournalError> next_delivery(
      std::chrono::sys_time<std::chrono::milliseconds> now);
  [[nodiscard]] tl::expected<void, JournalError> delivery_done(std::int64_t id);
  [[nodiscard]] tl::expected<void, JournalError> delivery_failed(std::int64_t id,
                                                                 std::chrono::sys_time<std::chrono::milliseconds> next_try,
                                                                 bool give_up);

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::agent
