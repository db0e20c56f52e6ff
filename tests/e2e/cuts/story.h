#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace fixpoint::cuts {

using Json = nlohmann::json;

/// What a client has been told of one session, joined over all its connections and lives.
struct Story {
  std::int64_t seq = 0;                      ///< the last number that was taken in
  std::map<std::string, std::string> texts;  ///< by message; without the user's own words, which are not sent to whoever said them
  std::string others;                        ///< updates that are no text, in order
  std::map<std::string, int> ends;           ///< by turn: how often its end was told

  /// The parameters of a session/update. False: an update is missing, or came twice.
  bool add(const Json& params) {
    if (!params.contains("_meta")) return true;  // a state that is announced, not recorded
    const Json& ours = params["_meta"]["fixpoint"];
    const std::int64_t last = ours["seq"], from = ours.value("from", last);
    if (from != seq + 1 || last < from) return false;
    seq = last;
    const Json& update = params["update"];
    if (update["sessionUpdate"] == "user_message_chunk") return true;
    if (update.contains("messageId")) {
      texts[update["messageId"]] += update["content"]["text"];
      return true;
    }
    others += update.dump() + "\n";
    if (update.contains("_meta") && update["_meta"]["fixpoint"].contains("turnEnded")) {
      ++ends[update["_meta"]["fixpoint"]["turnEnded"]["turn"].dump()];
    }
    return true;
  }
  bool operator==(const Story&) const = default;
};

}  // namespace fixpoint::cuts
