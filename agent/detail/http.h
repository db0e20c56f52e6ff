#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace fixpoint::agent::detail {

struct Url {
  bool tls = false;
  std::string host;    ///< without brackets
  std::string port;
  std::string target;  ///< from the first '/', at least "/"
};
/// "http://host:port/path" or https; anything else is an error that says why.
[[nodiscard]] tl::expected<Url, std::string> parse_url(std::string_view text);

struct HttpRequest {
  std::string method = "POST";
  Url url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string ca_file;  ///< another authority besides the system's
  std::chrono::milliseconds connect_timeout{10'000};  ///< name, connection and TLS handshake
  std::chrono::milliseconds idle_timeout{60'000};     ///< between two pieces of the answer
  std::chrono::milliseconds total_timeout{600'000};
};

struct HttpHead {
  int status = 0;
  std::string content_type;
  std::optional<std::chrono::seconds> retry_after;
};

struct HttpError {
  enum class Kind : std::uint8_t { cancelled, timeout, connect, tls, broken };
  Kind kind = Kind::connect;
  std::string detail;
};

/// A piece of the body; false ends the exchange (which is then a success).
using OnBody = std::function<bool(const HttpHead& head, std::string_view piece)>;

/// One request and its answer over a connection of its own; blocks, and returns at once when stopped. Certificates and
/// host names are verified. Redirects are not followed.
[[nodiscard]] tl::expected<HttpHead, HttpError> exchange(const HttpRequest& request, const OnBody& on_body, std::stop_token stop);

}  // namespace fixpoint::agent::detail
