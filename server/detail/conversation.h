#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "server/acp_updates.h"
#include "server/admission.h"
#include "server/session_hub.h"
#include "server/trace.h"

namespace fixpoint::server {

[[nodiscard]] inline tl::unexpected<HubError> hub_error(HubError::Kind kind, std::string detail) {
  return tl::unexpected(HubError{kind, std::move(detail)});
}

/// A conversation that is watched or at work.
struct SessionHub::Session {
  struct Watcher {
    std::shared_ptr<Outbox> outbox;
    bool asked = false;  ///< waits for the end of the turn
  };

  std::mutex mutex;  // guards everything here
  bool loaded = false;
  SessionRecord record;
  std::vector<Watcher> watchers;
  std::unique_ptr<Projection> projection;  ///< of the last turn; kept while it is at work
  std::int64_t last_seq = 0;               ///< of all updates that were announced
  std::int64_t last_event = 0;             ///< of the last turn's events that were announced
  bool running = false;
  std::stop_source stop;

  [[nodiscard]] std::int64_t sealed_updates() const {
    std::int64_t count = 0;
    for (const TurnRecord& turn : record.turns) count += turn.sealed ? turn.updates : 0;
    return count;
  }
  [[nodiscard]] TurnRecord* last_turn() { return record.turns.empty() ? nullptr : &record.turns.back(); }
  void ask(const std::shared_ptr<Outbox>& outbox) {
    for (Watcher& watcher : watchers) watcher.asked = watcher.asked || watcher.outbox == outbox;
  }
};

class SessionHub::Watch {
 public:
  Watch(SharedSession session, const Outbox* outbox) : session_(std::move(session)), outbox_(outbox) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    const std::scoped_lock lock(session_->mutex);
    std::erase_if(session_->watchers, [&](const Session::Watcher& watcher) { return watcher.outbox.get() == outbox_; });
  }

 private:
  SharedSession session_;
  const Outbox* outbox_;
};

struct SessionHub::Work {
  Principal who;
  TraceContext trace;
  Admission::Place place;
};

}  // namespace fixpoint::server
