#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::server {

struct Reply {
  int status = 0;                             ///< 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                           ///< chunks joined
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// A blocking client over one connection, written against the RFC and not against our server: what it sends is what the
/// test says. Gives up after half a minute.
class HttpClient {
 public:
  /// "http://127.0.0.1:PORT", "https://…" (any certificate) or "unix:PATH".
  explicit HttpClient(const std::string& address);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  [[nodiscard]] bool connected() const { return fd_ >= 0; }
  void send(std::string_view bytes);
  /// One whole answer. `no_body`: to a HEAD request.
  Reply read(bool no_body = false);
  /// What has come of the current answer, at least until `text` stood in it; empty where the connection ended before.
  std::string read_until(std::string_view text);
  /// Waits for the other side to close; what came before is thrown away.
  bool closed();
  void half_close();

  using HeaderList = std::vector<std::pair<std::string, std::string>>;
  static std::string message(const std::string& method, const std::string& path, const std::string& body = {}, const HeaderList& headers = {});
  Reply request(const std::string& method, const std::string& path, const std::string& body = {}, const HeaderList& headers = {});

  /// The peer certificate's common name (TLS).
  [[nodiscard]] std::string peer_name() const;

 private:
  bool fill();
  std::string take(std::size_t bytes);
  std::string line();
  struct Tls;
  int fd_ = -1;
  Tls* tls_ = nullptr;
  std::string pending_;
};

/// The data of each server-sent event.
[[nodiscard]] std::vector<std::string> events_of(const std::string& body);

}  // namespace fixpoint::server
