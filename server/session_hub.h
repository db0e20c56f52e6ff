#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "server/acp.h"
#include "server/outbox.h"
#include "server/principal.h"
#include "server/prompt_task.h"
#include "server/services.h"
#include "server/session_store.h"
#include "server/turn_pool.h"

namespace fixpoint::server {

struct HubError {
  enum class Kind : std::uint8_t {
    unknown,   ///< no such session, or somebody else's
    invalid,   ///< what was asked for; `detail` names the field
    busy,      ///< not now
    internal,  ///< journal or store
  };
  Kind kind = Kind::internal;
  std::string detail;
  int retry_after_seconds = 0;
};

/// What a prompt asks for beside its task.
struct PromptOptions {
  acp::BudgetWish budget;
  std::string key;
  std::string traceparent;
};

/// What a person decides when a loop has come to its end without a program that passes.
enum class Decision : std::uint8_t { more_rounds, specialist, take_best };

/// Conversations, apart from the sockets that watch them: runs the agent's loop for each prompt on a bounded pool of
/// threads and hands every update to whoever watches, after its event is in the journal. Thread-safe. A conversation that
/// nobody watches and that is not at work takes no memory.
class SessionHub {
 public:
  struct Options {
    std::size_t max_queued = 1'024;
    /// What a prompt may ask for at most.
    agent::Amounts most{.rounds = agent::kMaxRounds,
                        .tokens = 1 << 18,
                        .wall = std::chrono::minutes(60),
                        .sandbox = std::chrono::minutes(15)};
    agent::Amounts more{.rounds = 3,
                        .tokens = 8'192,
                        .wall = std::chrono::minutes(5),
                        .sandbox = std::chrono::minutes(1)};  ///< what Decision::more_rounds grants
  };
  /// `services` and `store` outlive the hub.
  SessionHub(Services& services, SessionStore& store) : SessionHub(services, store, Options{}) {}
  SessionHub(Services& services, SessionStore& store, Options options);
  SessionHub(const SessionHub&) = delete;
  SessionHub& operator=(const SessionHub&) = delete;
  /// Interrupts what runs; it goes on in recover() of the next hub.
  ~SessionHub();

  template <class T>
  using Result = tl::expected<T, HubError>;

  [[nodiscard]] Result<SessionRecord> create(const Principal& who, const std::string& cwd);
  [[nodiscard]] Result<std::vector<SessionRecord>> list(const Principal& who, const std::string& cwd, int limit, const std::string& cursor);

  struct Opened {
    SessionRecord record;
    std::int64_t last_seq = 0;
    bool at_work = false;
  };
  /// A turn that a crash interrupted goes on.
  [[nodiscard]] Result<Opened> open(const Principal& who, const std::string& id);
  /// Keeps an outbox watching; ends with it.
  class Watch;
  /// Every update after `after` is put into the outbox, those of the past first. An outbox that watches already begins anew,
  /// and gets no second handle.
  [[nodiscard]] Result<std::shared_ptr<Watch>> watch(const Principal& who, const std::string& id, std::int64_t after,
                                                     const std::shared_ptr<Outbox>& outbox);

  /// Begins a turn; its end is put into the outbox, which watches already.
  [[nodiscard]] Result<void> prompt(const Principal& who, const std::string& id, PromptTask task, const PromptOptions& options,
                                    const std::shared_ptr<Outbox>& outbox);
  /// Goes on with the last turn, which was handed over as `escalation`; its end is put into the outbox.
  [[nodiscard]] Result<void> decide(const Principal& who, const std::string& id, const std::string& escalation, Decision decision,
                                    const std::shared_ptr<Outbox>& outbox);
  /// Stops the turn that runs; its end says so.
  [[nodiscard]] Result<void> cancel(const Principal& who, const std::string& id);

  [[nodiscard]] Result<SessionRecord> set_mode(const Principal& who, const std::string& id, const std::string& mode);
  [[nodiscard]] Result<SessionRecord> set_option(const Principal& who, const std::string& id, const std::string& option,
                                                 const std::string& value);
  /// To everyone else who watches: a state that is not part of the record.
  void announce(const std::string& id, const std::string& body, const Outbox* except);

  /// Turns that were at work when the last process ended go on.
  void recover();
  /// Goes on with a session of the journal in the background (a hint was given, a program handed in).
  void go_on(const std::string& tenant, const std::string& journal_session);
  [[nodiscard]] bool has_specialist() const { return services_.agent.specialist != nullptr; }
  [[nodiscard]] std::size_t at_work() const { return at_work_; }
  /// Interrupts all turns, for a server that ends: they stay at work in the store.
  void interrupt_all();

 private:
  struct Session;
  using SharedSession = std::shared_ptr<Session>;
  struct Work;  // one run of a turn

  [[nodiscard]] Result<SharedSession> acquire(const Principal& who, const std::string& id);
  // With the session's lock held:
  [[nodiscard]] Result<void> load(Session& session);
  [[nodiscard]] Result<void> save(Session& session);
  [[nodiscard]] Result<std::vector<SharedUpdate>> history(const Session& session, std::int64_t after) const;
  [[nodiscard]] Result<void> start(const SharedSession& session, Work work);
  [[nodiscard]] Result<void> repeat(const SharedSession& session, Work work, const std::shared_ptr<Outbox>& outbox);
  void catch_up(Session& session, std::int64_t before_event);
  void publish(Session& session, const agent::Stamped& stamped);
  void seal_last_turn(Session& session);
  void finish(Session& session, TurnEnd end);
  [[nodiscard]] Result<void> hand_to_specialist(Session& session, const std::string& escalation, const std::string& by);
  // Without it:
  void run(const SharedSession& session, const Work& work);
  [[nodiscard]] Result<agent::LoopOptions> loop_options(const SessionRecord& record, const acp::BudgetWish& wish) const;

  Services& services_;
  SessionStore& store_;
  const Options options_;
  mutable std::mutex mutex_;  // taken after a session's lock, where both are
  std::map<std::string, std::weak_ptr<Session>> sessions_;  // guarded by mutex_
  std::stop_source ending_;
  std::atomic<std::size_t> at_work_{0};
  std::unique_ptr<TurnPool> pool_;  // last: its threads use the rest
};

}  // namespace fixpoint::server
