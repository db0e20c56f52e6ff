#pragma once

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/admission.h"
#include "server/any_stream.h"
#include "server/api.h"
#include "server/server.h"
#include "server/tokens.h"

namespace fixpoint::server::detail {

class Connection;

/// What connections share. Owned by the server, used on its thread.
struct Shared {
  const ServerOptions& options;
  Services& services;
  AcpHub* hub = nullptr;
  boost::asio::thread_pool& workers;
  std::shared_ptr<const TokenSet> tokens;  ///< null: none are configured, everybody is local
  std::set<Connection*> connections;
  std::function<void()> connection_gone;   ///< after the last one left
};

/// One socket, read and answered request by request; on the server's thread only. A read is kept pending while an answer is
/// being made, so that a client that goes away is noticed at once.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(AnyStream stream, std::string address, Admission::Place place, Shared& shared);
  ~Connection();

  /// Until the connection ends.
  static boost::asio::awaitable<void> run(std::shared_ptr<Connection> self);

  /// No further request; at once where none is under way.
  void begin_drain();
  void close();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  Awaitable<void> serve();
  Awaitable<void> linger();
  Awaitable<bool> read_request();
  Awaitable<bool> parse_some(Clock::time_point& deadline);
  Awaitable<bool> read_more(Clock::time_point deadline);
  Awaitable<bool> answer();
  Awaitable<Answer> work();
  Awaitable<bool> complete(std::unique_ptr<Completion> completion);
  Awaitable<bool> stream(std::unique_ptr<Completion> completion);
  Awaitable<bool> refuse(HttpResponse response);
  Awaitable<bool> respond(const HttpResponse& response, bool keep_alive);
  Awaitable<bool> write(std::string data);
  Awaitable<void> upgrade();
  /// True when woken, false when the time has come.
  Awaitable<bool> sleep_until(Clock::time_point time);

  void start_read();
  void wake() { wake_.cancel(); }
  [[nodiscard]] std::optional<HttpResponse> check_head();
  [[nodiscard]] std::optional<HttpResponse> identify();
  [[nodiscard]] std::optional<HttpResponse> check_origin();
  [[nodiscard]] HttpResponse preflight() const;
  [[nodiscard]] std::string head(int status, const std::string& content_type, const Headers& headers, bool keep_alive) const;
  void note(int status);

  AnyStream stream_;
  std::optional<WebSocket> web_socket_;  // what stream_ became
  boost::asio::any_io_executor executor_;
  std::string address_;
  Admission::Place place_, token_place_;
  std::string counted_token_;            // whose token_place_ is
  Shared* shared_;
  boost::asio::steady_timer wake_, write_timer_;
  std::uint64_t write_id_ = 0;

  boost::beast::flat_buffer buffer_;
  bool reading_ = false;      // a read is pending; buffer_'s end belongs to it
  bool closed_ = false;       // the other side has gone, or we have closed
  bool draining_ = false;
  bool busy_ = false;         // a request is under way
  bool fresh_ = true;         // no request yet
  bool timed_out_ = false;

  std::optional<Parser> parser_;
  bool head_checked_ = false;
  bool is_upgrade_ = false;
  const Route* route_ = nullptr;
  std::shared_ptr<HttpRequest> request_;
};

}  // namespace fixpoint::server::detail
