#pragma once

#include <chrono>
#include <string>

namespace fixpoint::server {

struct BridgeOptions {
  std::string url;      ///< ws://HOST:PORT/acp or wss://…
  std::string token;    ///< sent as a bearer token; may be empty
  std::string ca_file;  ///< further certificate authority for wss
  std::chrono::milliseconds patience{60'000};  ///< how long a server that went away is looked for
};

/// Carries ACP between a pair of pipes (a message a line) and a server's WebSocket. When the connection breaks it connects
/// again, resumes the sessions that are open where they were and asks the prompts that are unanswered once more by their
/// keys: the editor notices nothing. Returns when the input ends, or an error, a sentence for people.
[[nodiscard]] std::string run_acp_bridge(const BridgeOptions& options, int input, int output);

}  // namespace fixpoint::server
