#pragma once

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace fixpoint::server {

/// A byte stream over TCP or a Unix socket, with or without TLS: one type, and behind it one kind of buffers and of handlers, so
/// that sockets and TLS are compiled once and not for each operation above them.
/// An asynchronous stream in Asio's sense. Used on its executor's thread only.
class AnyStream {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Handler = boost::asio::any_completion_handler<void(boost::system::error_code, std::size_t)>;
  using HandshakeHandler = boost::asio::any_completion_handler<void(boost::system::error_code)>;

  explicit AnyStream(Socket socket) : plain_(std::move(socket)) {}
  /// With TLS; async_handshake() comes first.
  AnyStream(Socket socket, boost::asio::ssl::context& context)
      : tls_(std::make_unique<boost::asio::ssl::stream<Socket>>(std::move(socket), context)) {}

  [[nodiscard]] executor_type get_executor() { return socket().get_executor(); }
  [[nodiscard]] Socket& socket() { return tls_ ? tls_->next_layer() : *plain_; }
  [[nodiscard]] bool is_tls() const { return tls_ != nullptr; }

  /// As a server, or with `host` as a client, which checks that the certificate is the host's. Does nothing without TLS.
  template <class Token>
  auto async_handshake(std::optional<std::string> host, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
        [this](auto handler, const std::optional<std::string>& whose) { handshake(whose, HandshakeHandler(std::move(handler))); }, token,
        std::move(host));
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& into) { read_some(Some<boost::asio::mutable_buffer>(into), Handler(std::move(handler))); }, token,
        buffers);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& from) { write_some(Some<boost::asio::const_buffer>(from), Handler(std::move(handler))); }, token,
        buffers);
  }

  /// Ends everything that is pending.
  void close() {
    boost::system::error_code ignored;
    socket().close(ignored);
  }

 private:
  /// The first buffers of a sequence: an operation may do less than it was asked for.
  template <class Buffer>
  class Some {
   public:
    template <class Buffers>
    explicit Some(const Buffers& buffers) {
      const auto end = boost::asio::buffer_sequence_end(buffers);
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != end && count_ < buffers_.size(); ++it) {
        if (const Buffer buffer(*it); buffer.size() > 0) buffers_[count_++] = buffer;
      }
    }
    [[nodiscard]] const Buffer* begin() const { return buffers_.data(); }
    [[nodiscard]] const Buffer* end() const { return buffers_.data() + count_; }

   private:
    std::array<Buffer, 8> buffers_;
    std::size_t count_ = 0;
  };

  void handshake(const std::optional<std::string>& host, HandshakeHandler handler);
  void read_some(const Some<boost::asio::mutable_buffer>& into, Handler handler);
  void write_some(const Some<boost::asio::const_buffer>& from, Handler handler);

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
