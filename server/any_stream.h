#pragma once

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace fixpoint::server {

/// A byte stream over TCP or a Unix socket, with or without TLS: one type, so that what stands on it is compiled once.
/// An asynchronous stream in Asio's sense. Used on its executor's thread only.
class AnyStream {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Socket = boost::asio::generic::stream_protocol::socket;

  explicit AnyStream(Socket socket) : plain_(std::move(socket)) {}
  /// With TLS; async_handshake() comes first.
  AnyStream(Socket socket, boost::asio::ssl::context& context)
      : tls_(std::make_unique<boost::asio::ssl::stream<Socket>>(std::move(socket), context)) {}

  [[nodiscard]] executor_type get_executor() { return socket().get_executor(); }
  [[nodiscard]] Socket& socket() { return tls_ ? tls_->next_layer() : *plain_; }
  [[nodiscard]] bool is_tls() const { return tls_ != nullptr; }

  /// Does nothing without TLS.
  template <class Token>
  auto async_handshake(Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
        [this](auto handler) {
          if (tls_) {
            tls_->async_handshake(boost::asio::ssl::stream_base::server, std::move(handler));
          } else {
            boost::asio::post(get_executor(), boost::beast::bind_front_handler(std::move(handler), boost::system::error_code()));
          }
        },
        token);
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& into) {
          if (tls_) {
            tls_->async_read_some(into, std::move(handler));
          } else {
            plain_->async_read_some(into, std::move(handler));
          }
        },
        token, buffers);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& from) {
          if (tls_) {
            tls_->async_write_some(from, std::move(handler));
          } else {
            plain_->async_write_some(from, std::move(handler));
          }
        },
        token, buffers);
  }

  /// Ends everything that is pending.
  void close() {
    boost::system::error_code ignored;
    socket().close(ignored);
  }

 private:
  std::optional<Socket> plain_;  // one of the two
  std::unique_ptr<boost::asio::ssl::stream<Socket>> tls_;
};

/// A WebSocket without compression: what it would save costs 300 KB a connection.
using WebSocket = boost::beast::websocket::stream<AnyStream, false>;

// What Beast's WebSocket asks of a stream that is not its own, found by argument-dependent lookup. TLS is ended without its
// closing message: the WebSocket's own close has been exchanged.
inline void beast_close_socket(AnyStream& stream) { stream.close(); }
inline void teardown(boost::beast::role_type, AnyStream& stream, boost::system::error_code& error) {
  stream.socket().shutdown(AnyStream::Socket::shutdown_both, error);
}
template <class Handler>
void async_teardown(boost::beast::role_type, AnyStream& stream, Handler&& handler) {
  boost::system::error_code error;
  stream.socket().shutdown(AnyStream::Socket::shutdown_both, error);
  boost::asio::post(stream.get_executor(), boost::beast::bind_front_handler(std::forward<Handler>(handler), error));
}

}  // namespace fixpoint::server
