#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "server/services.h"

namespace fixpoint::server {

class AcpHub;

struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 8 * 1024 * 1024;
  std::chrono::milliseconds head_timeout{10'000};   ///< from a connection's or a request's first byte to the end of its head
  std::chrono::milliseconds body_timeout{30'000};   ///< for a whole body
  std::chrono::milliseconds idle_timeout{75'000};   ///< between requests of a connection
  std::chrono::milliseconds write_timeout{30'000};  ///< for one piece of an answer; who reads slower is cut off
  std::chrono::milliseconds comment_interval{15'000};  ///< a silent stream of events gets a comment, so that it looks alive
};

struct ServerOptions {
  std::vector<std::string> listen{"127.0.0.1:8642"};  ///< HOST:PORT, [ADDRESS]:PORT or unix:PATH; port 0: any
  std::string tls_certificate, tls_key;               ///< PEM files; both or none. Unix sockets go without
  std::string token_file;                             ///< empty: only loopback and Unix sockets, and no token is asked for
  std::vector<std::string> origins;                   ///< web pages that may call, such as "https://app.example"
  HttpLimits http;
  std::chrono::milliseconds drain_deadline{30'000};
  int worker_threads = 4;       ///< for what blocks: the journal, the tokeniser
  bool handle_signals = false;  ///< SIGTERM and SIGINT drain (a second one ends at once), SIGHUP reloads
};

/// One port for HTTP and WebSocket. Has a thread of its own for all sockets; public functions may be called from any
/// thread. Destroying it closes what is open, which ends the work behind it.
class Server {
 public:
  /// What `start` would refuse before it binds anything: addresses, files, options that do not go together.
  [[nodiscard]] static tl::expected<void, std::string> check(const ServerOptions& options);
  /// Binds, then serves. `services` must outlive it; so must `hub`, which may be null: then /acp answers 501.
  /// Error: a sentence for people.
  [[nodiscard]] static tl::expected<std::unique_ptr<Server>, std::string> start(ServerOptions options, Services& services,
                                                                                AcpHub* hub = nullptr);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// As bound, with real ports: "http://127.0.0.1:8642", "https://[::1]:8443", "unix:/run/fixpoint.sock".
  [[nodiscard]] const std::vector<std::string>& addresses() const;

  /// Reads tokens and certificates again, for connections and requests to come; on an error the old ones stay.
  [[nodiscard]] tl::expected<void, std::string> reload();

  /// Takes nothing new, lets what is under way finish, and closes what has not after the deadline. Returns at once.
  void drain();
  /// Until a drain is over.
  void wait();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::server
