#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"

namespace fixpoint::server {

/// One session/update, as it follows from an event of the journal.
struct Update {
  std::int64_t seq = 0;  ///< 1, 2, … within a conversation, without gaps; 0: a state that is announced, not recorded
  bool echo = false;     ///< what the client said itself: not sent to whoever sent it
  std::string body;      ///< the JSON of `params.update`; empty for pieces of text
  // A piece of text: pieces of one message may be joined.
  std::string kind;      ///< "agent_thought_chunk"
  std::string message;   ///< which message it belongs to
  std::string text;
  std::chrono::steady_clock::time_point made{};  ///< the event; nothing where it comes from the journal
};
using SharedUpdate = std::shared_ptr<const Update>;

/// How a turn ended, for whoever asked for it.
struct TurnEnd {
  std::string session;  ///< the conversation
  std::string turn;     ///< the session in the journal
  std::optional<agent::Ended> end;  ///< nothing: the loop could not go on, `error` says why
  std::string program;  ///< the best one's
  std::string error;
  bool busy = false;    ///< another process runs it
  std::string file;     ///< the edited file; may be empty
  std::int64_t seq = 0; ///< the last update of the turn
};

/// The JSON of session/update's parameters. `from` is the first sequence number that it stands for.
[[nodiscard]] std::string render_update(std::string_view session, const Update& update, std::int64_t from);

}  // namespace fixpoint::server
