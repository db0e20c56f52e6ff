#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/principal.h"
#include "server/trace.h"

namespace fixpoint::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// A whole request, read and admitted.
struct HttpRequest {
  std::string method;
  std::string path;   ///< decoded, without the query
  Headers query;      ///< decoded
  Headers headers;    ///< names in lower case
  std::string body;
  std::vector<std::string> parameters;  ///< what stood at the route's {…}, in order
  Principal who;
  TraceContext trace;
  std::string id;     ///< of the request, for logs and for the answer's X-Request-Id
  std::chrono::steady_clock::time_point arrived{};

  /// The first of that name; empty where there is none.
  [[nodiscard]] std::string_view header(std::string_view lower_case_name) const;
  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;
};

/// An error as OpenAI's clients know it: {"error": {"message", "type", "param", "code"}}.
struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  ///< the field at fault; empty: none
  std::string code;   ///< for programs; empty: none
  std::optional<std::chrono::seconds> retry_after;
  [[nodiscard]] std::string body() const;
  [[nodiscard]] HttpResponse response() const;
};

/// "/a%20b?x=1" in parts. Nothing where it isn't a path or an escape is broken or decodes to NUL.
struct Target {
  std::string path;
  Headers query;
};
[[nodiscard]] std::optional<Target> parse_target(std::string_view text);

[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace fixpoint::server
