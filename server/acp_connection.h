#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "server/acp_peer.h"
#include "server/any_stream.h"
#include "server/metrics.h"
#include "server/session_hub.h"

namespace fixpoint::server {

/// Why a WebSocket at /acp is closed by the service (docs/protocol.md). 1009 (a message is too big) comes from WebSocket itself.
enum class CloseCode : std::uint16_t {
  normal = 1000,
  going_away = 1001,  ///< the server ends: connect again and resume
  internal = 1011,    ///< connect again and resume
  behind = 4000,      ///< the client reads too slowly: connect again and resume
  idle = 4001,        ///< nothing happened for long: connect when there is something to do
};

/// What connections at /acp share: the conversations, the limits, and who is connected. Thread-safe.
class AcpHub {
 public:
  struct Options {
    AcpPeer::Options peer;
    Outbox::Options outbox;
    std::chrono::milliseconds ping{30'000};      ///< a silent connection is pinged; unanswered, it ends after as long again
    std::chrono::milliseconds idle{1'800'000};   ///< without a message, a prompt and an update
    std::chrono::milliseconds write{30'000};     ///< for one message to be taken by the socket
    Histogram* latency = nullptr;                ///< seconds from an event, before it is journaled, to the socket; outlives the hub
  };
  explicit AcpHub(SessionHub& sessions) : AcpHub(sessions, Options{}) {}
  AcpHub(SessionHub& sessions, Options options) : sessions_(sessions), options_(std::move(options)) {}
  AcpHub(const AcpHub&) = delete;
  AcpHub& operator=(const AcpHub&) = delete;

  /// Closes all connections with `going_away`. What runs is interrupted by SessionHub::interrupt_all().
  void drain();
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] SessionHub& sessions() { return sessions_; }
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  friend class AcpConnection;
  SessionHub& sessions_;
  const Options options_;
  mutable std::mutex mutex_;
  std::set<std::shared_ptr<class AcpConnection>> open_;  // guarded by mutex_
};

/// One client at /acp, from the upgrade's head (read already) to its end. On the socket's executor, which is one thread; what
/// may wait for the journal is done by `workers`, which end before the executor goes.
[[nodiscard]] boost::asio::awaitable<void> run_acp_connection(WebSocket& socket,
                                                              const boost::beast::http::request<boost::beast::http::string_body>& head,
                                                              Principal who, AcpHub& hub, boost::asio::thread_pool& workers);

}  // namespace fixpoint::server
