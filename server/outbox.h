#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/update.h"

namespace fixpoint::server {

/// What waits to be sent to one client. Bounded: pieces of text of one message are joined while they wait, nothing else
/// is ever left out, and when more than `max_bytes` wait the client is behind: what waits is let go and the connection is
/// closed with a code that says so (the journal still has it all, and session/resume sends the rest). What a client asks to
/// be replayed waits outside the bound; a session's own budgets bound it.
///
/// Any thread puts in; one takes out.
class Outbox {
 public:
  struct Options {
    std::size_t max_bytes = std::size_t{4} << 20;
    std::size_t max_joined = std::size_t{64} << 10;  ///< of one joined piece of text
  };
  /// A whole JSON-RPC message.
  struct Message {
    std::string json;
  };
  /// An update of a session, with the first number that it stands for.
  struct Numbered {
    std::string session;
    SharedUpdate update;
    std::int64_t from = 0;
    std::shared_ptr<Update> joined;  ///< `update` where it was joined here, and so is nobody else's
  };
  using Entry = std::variant<Message, Numbered, TurnEnd>;

  /// `wake` is called, on the thread that puts in and without a lock, when something waits that did not before; it must
  /// only tell the taker to look.
  explicit Outbox(std::function<void()> wake) : Outbox(std::move(wake), Options{}) {}
  Outbox(std::function<void()> wake, Options options) : wake_(std::move(wake)), options_(options) {}

  void put(Message message);
  void put(const std::string& session, SharedUpdate update);
  void put(TurnEnd end);
  /// The client has everything up to `after`, and lacks these, in order; updates of the session that still wait are among
  /// them. What is put in later follows.
  void replay(const std::string& session, std::int64_t after, std::vector<SharedUpdate> updates);

  [[nodiscard]] std::optional<Entry> take();
  /// More waited than fits. Stays true; nothing waits any more.
  [[nodiscard]] bool behind() const;
  /// Nothing is put in any more, and nobody is woken; a call of `wake` that was under way has ended.
  void close();
  [[nodiscard]] std::size_t waiting_bytes() const;

 private:
  struct Replay {
    std::string session;
    std::int64_t after = 0;
    std::vector<SharedUpdate> updates;
    std::size_t next = 0;
  };
  using Slot = std::variant<Message, Numbered, TurnEnd, Replay>;

  bool add(Slot slot, std::size_t bytes);  // with the lock; false: nobody need be woken
  Numbered take_replay(Replay& replay);
  Numbered covering(std::string session, SharedUpdate update);

  void wake();

  std::function<void()> wake_;
  std::mutex waking_;    // held while wake_ is called
  bool silent_ = false;  // guarded by waking_
  const Options options_;
  mutable std::mutex mutex_;
  std::deque<Slot> slots_;
  std::size_t bytes_ = 0;
  bool behind_ = false;
  bool closed_ = false;
  std::map<std::string, std::int64_t> sent_;  ///< the last number handed out, by session
};

}  // namespace fixpoint::server
