#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>

namespace fixpoint::server::jsonrpc {

using Json = nlohmann::json;

/// null, an integer or a string: what ACP allows.
using Id = std::variant<std::monostate, std::int64_t, std::string>;

enum Code : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
  kCancelled = -32800,     ///< by $/cancel_request
  kAuthRequired = -32000,
  kNotFound = -32002,      ///< a session or a file
  kBusy = -32001,          ///< of this service: not now; `data.retryAfterSeconds` where it is known
};

struct Error {
  int code = kInternalError;
  std::string message;
  Json data = nullptr;  ///< left out when null
};

/// A request, or without an id a notification.
struct Request {
  std::optional<Id> id;
  std::string method;
  Json params = nullptr;  ///< an object, or null where there were none
};
struct Response {
  Id id;
  tl::expected<Json, Error> result;
};
using Message = std::variant<Request, Response>;

/// Why a text is no message. It is answered with `id`, null where the text does not say one; `answer` is false for what
/// looks like a response, which is never answered.
struct Refusal {
  Id id;
  Error error;
  bool answer = true;
};

struct Limits {
  std::size_t bytes = std::size_t{4} << 20;
  int depth = 64;  ///< of arrays and objects
};

/// One message; a batch is refused. The text may be anything.
[[nodiscard]] tl::expected<Message, Refusal> parse(std::string_view text, const Limits& limits);
[[nodiscard]] inline tl::expected<Message, Refusal> parse(std::string_view text) { return parse(text, Limits{}); }

/// On one line; what is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string dump(const Json& json);
[[nodiscard]] std::string quoted(std::string_view text);

[[nodiscard]] std::string result(const Id& id, const Json& value);
[[nodiscard]] std::string error(const Id& id, const Error& error);
[[nodiscard]] std::string request(const Id& id, std::string_view method, const Json& params);
[[nodiscard]] std::string notification(std::string_view method, const Json& params);

}  // namespace fixpoint::server::jsonrpc
