#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>

namespace fixpoint::load {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// One editor at /acp with one session. All on the context's one thread. Lives until the context does no more work.
class Editor {
 public:
  Editor(boost::asio::io_context& context, std::uint16_t port);
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  /// Connects and begins a session; then it answers pings and takes in what comes.
  boost::asio::awaitable<void> open();
  /// Connects and resumes another one's session from its begin, and reads no more after the answer.
  boost::asio::awaitable<void> open_and_stop_reading(std::string session);
  /// Prompts, again and again where `again`.
  void work(std::string task, bool again);
  /// Asks for the end of what it prompted; `cancelled_at` is when.
  void cancel();

  [[nodiscard]] bool busy() const { return busy_; }
  [[nodiscard]] bool lost() const { return lost_; }  ///< the connection ended
  [[nodiscard]] const std::string& session() const { return session_; }
  [[nodiscard]] std::int64_t updates() const { return updates_; }
  [[nodiscard]] Clock::time_point prompted_at() const { return prompted_at_; }
  [[nodiscard]] Clock::time_point cancelled_at() const { return cancelled_at_; }
  [[nodiscard]] Clock::time_point answered_at() const { return answered_at_; }
  [[nodiscard]] const std::string& stop_reason() const { return stop_reason_; }

 private:
  boost::asio::awaitable<void> connect();
  boost::asio::awaitable<Json> call(const char* method, Json params);
  boost::asio::awaitable<void> listen();
  boost::asio::awaitable<void> write();
  void send(const Json& message);
  void heard(const Json& frame);
  void prompt();

  boost::asio::io_context& context_;
  std::uint16_t port_;
  boost::beast::websocket::stream<boost::asio::ip::tcp::socket> socket_;
  boost::beast::flat_buffer buffer_;
  std::deque<std::string> waiting_;
  bool writing_ = false, busy_ = false, again_ = false, lost_ = false;
  int last_id_ = 0;
  std::int64_t updates_ = 0;
  std::string session_, task_, stop_reason_;
  Clock::time_point prompted_at_, cancelled_at_, answered_at_;
};

}  // namespace fixpoint::load
