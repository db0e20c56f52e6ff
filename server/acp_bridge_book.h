#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::server {

/// What a bridge remembers of the talk between an editor and a server, so that it can go on over another connection. Pure:
/// lines in, lines out. One thread.
class AcpBridgeBook {
 public:
  struct Line {
    std::string text;
    bool bound = false;  ///< to this connection: a request (reconnected() says it again), or an answer
  };
  /// What the editor said, as it goes to the server; nothing where it answers a question of a connection that is gone.
  /// Prompts get a key, so that they can be asked again.
  [[nodiscard]] std::optional<Line> from_editor(std::string_view line);
  /// What the server said, as it goes to the editor; nothing where it was meant for the bridge.
  [[nodiscard]] std::optional<std::string> from_server(std::string_view text);

  /// The connection broke: what the editor is told (its open questions are withdrawn).
  [[nodiscard]] std::vector<std::string> disconnected();
  /// What a new connection begins with: the hello, the sessions that are open, the requests that have no answer.
  [[nodiscard]] std::vector<std::string> reconnected();

 private:
  using Json = nlohmann::json;
  struct Open {
    std::string cwd;
    std::int64_t last_seq = 0;
  };
  void answered(const Json& request, const Json& response);
  [[nodiscard]] std::string own_id();

  Json initialize_;                      ///< the editor's request, once it was answered
  std::map<std::string, Json> pending_;  ///< the editor's requests without an answer, by their ids as JSON
  std::vector<std::string> order_;       ///< their ids in the order in which they came
  std::map<std::string, Open> sessions_;
  std::vector<std::string> asked_;       ///< the server's questions that the editor has not answered, by the ids it knows
  int connection_ = 1;
  int last_own_ = 0;
};

}  // namespace fixpoint::server
