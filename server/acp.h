#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "agent/budget.h"
#include "server/jsonrpc.h"

// The messages of the Agent Client Protocol, version 1, as values. What the service adds rides in `_meta.fixpoint`.
namespace fixpoint::server::acp {

using jsonrpc::Json;

inline constexpr int kProtocolVersion = 1;

/// What the client offers.
struct ClientInfo {
  std::string name, version;
  bool reads_files = false;   ///< fs/read_text_file
  bool writes_files = false;  ///< fs/write_text_file
};
struct Initialize {
  std::int64_t protocol_version = 0;
  ClientInfo client;
};
struct Authenticate {
  std::string method;
};
struct NewSession {
  std::string cwd;  ///< absolute
};
/// session/load and session/resume.
struct OpenSession {
  std::string session;
  std::string cwd;
  std::optional<std::int64_t> last_seq;  ///< the last update that the client has; resume replays what follows it
};
struct ListSessions {
  std::optional<std::string> cwd;
  std::string cursor;
};
struct SessionOnly {  ///< close, cancel
  std::string session;
};
struct SetMode {
  std::string session, mode;
};
struct SetConfig {
  std::string session, option, value;
};

struct TextBlock {
  std::string text;
};
struct ResourceBlock {  ///< embedded
  std::string uri, text;
};
struct LinkBlock {
  std::string uri, name;
};
using Block = std::variant<TextBlock, ResourceBlock, LinkBlock>;

/// Limits that a prompt asks for instead of the session's; what is not set stays.
struct BudgetWish {
  std::optional<int> rounds;
  std::optional<std::int64_t> tokens;
  std::optional<std::chrono::milliseconds> wall, sandbox;
};
struct Prompt {
  std::string session;
  std::vector<Block> blocks;
  BudgetWish budget;
  std::string key;          ///< the same prompt, sent again after a cut, has the same key: it is not run twice
  std::string language;     ///< of the program; empty: found out
  std::string function;     ///< that tests call; empty: found out
  std::string file;         ///< absolute path of the edited file; empty: found out
  std::string traceparent;  ///< W3C trace context; may be empty
};
struct CancelRequest {
  jsonrpc::Id id;
};

/// The error names the field.
template <class T>
using Parsed = tl::expected<T, std::string>;
[[nodiscard]] Parsed<Initialize> parse_initialize(const Json& params);
[[nodiscard]] Parsed<Authenticate> parse_authenticate(const Json& params);
[[nodiscard]] Parsed<NewSession> parse_new_session(const Json& params);
[[nodiscard]] Parsed<OpenSession> parse_open_session(const Json& params);
[[nodiscard]] Parsed<ListSessions> parse_list_sessions(const Json& params);
[[nodiscard]] Parsed<SessionOnly> parse_session_only(const Json& params);
[[nodiscard]] Parsed<SetMode> parse_set_mode(const Json& params);
[[nodiscard]] Parsed<SetConfig> parse_set_config(const Json& params);
[[nodiscard]] Parsed<Prompt> parse_prompt(const Json& params);
[[nodiscard]] Parsed<CancelRequest> parse_cancel_request(const Json& params);

/// The client's answer to session/request_permission: the chosen option, or nothing where it was cancelled.
[[nodiscard]] Parsed<std::optional<std::string>> parse_permission(const Json& result);
/// The client's answer to fs/read_text_file.
[[nodiscard]] Parsed<std::string> parse_file_content(const Json& result);

/// "/home/me/a b.py" for "file:///home/me/a%20b.py"; nothing for another scheme or host.
[[nodiscard]] std::optional<std::string> path_of_uri(std::string_view uri);

}  // namespace fixpoint::server::acp
