#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace fixpoint::agent {

/// A request as the test server got it.
struct SeenRequest {
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// What it answers: raw bytes in pieces (the head included), then it closes. `hold`: it keeps the connection open and
/// silent until the client goes away.
struct ServerAnswer {
  std::vector<std::string> pieces;
  bool hold = false;
};
[[nodiscard]] std::string http_head(int status, const std::string& content_type, const std::string& more = "");
[[nodiscard]] ServerAnswer whole_answer(int status, const std::string& content_type, const std::string& body, const std::string& more = "");
/// Server-sent events with these texts as deltas, a finish reason and usage.
[[nodiscard]] ServerAnswer streamed_answer(const std::vector<std::string>& deltas, const std::string& finish = "stop");

/// A small HTTP (or TLS) server on loopback, one connection at a time on a thread of its own; ends when it dies.
class HttpServer {
 public:
  using Respond = std::function<ServerAnswer(const SeenRequest&)>;
  explicit HttpServer(Respond respond, bool tls = false);
  ~HttpServer();

  [[nodiscard]] std::string url(const std::string& path) const;
  [[nodiscard]] std::vector<SeenRequest> seen() const;
  /// The certificate in PEM form, where TLS is on ("localhost").
  [[nodiscard]] const std::string& certificate() const;
  /// How many held connections the client has closed.
  [[nodiscard]] int closed_by_client() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::agent
