#include "agent/detail/http.h"

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast.hpp>
#include <boost/beast/ssl.hpp>
#include <charconv>

namespace fixpoint::agent::detail {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;

constexpr std::size_t kMaxHeaderBytes = 64 * 1024;

/// Runs one asynchronous operation at a time on this thread, so that each can be ended by its timer or by a stop request.
class Waiter {
 public:
  explicit Waiter(asio::io_context& io) : io_(&io) {}

  template <class Start>
  error_code wait(Start&& start) {
    bool done = false;
    error_code result;
    start([&done, &result](const error_code& error, auto&&...) {
      result = error;
      done = true;
    });
    while (!done) {
      io_->restart();
      io_->run_one();
    }
    return result;
  }

 private:
  asio::io_context* io_;
};

HttpError failure(const error_code& error, HttpError::Kind kind, const std::string& what, const std::stop_token& stop) {
  if (stop.stop_requested()) return {HttpError::Kind::cancelled, "cancelled"};
  if (error == beast::error::timeout || error == asio::error::timed_out) return {HttpError::Kind::timeout, what + ": no answer in time"};
  return {kind, what + ": " + error.message()};
}

http::request<http::string_body> message_of(const HttpRequest& request) {
  http::request<http::string_body> message(http::string_to_verb(request.method), request.url.target, 11);
  const bool default_port = request.url.port == (request.url.tls ? "443" : "80");
  const bool v6 = request.url.host.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + request.url.host + "]" : request.url.host;
  message.set(http::field::host, default_port ? host : host + ":" + request.url.port);
  message.set(http::field::user_agent, "fixpoint");
  message.set(http::field::connection, "close");
  for (const auto& [name, value] : request.headers) message.set(name, value);
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

template <class Fields>
HttpHead head_of(const http::response_header<Fields>& header) {
  HttpHead head{.status = static_cast<int>(header.result_int()), .content_type = std::string(header[http::field::content_type])};
  const auto text = header[http::field::retry_after];
  long seconds = 0;
  if (!text.empty() && std::from_chars(text.data(), text.data() + text.size(), seconds).ec == std::errc() && seconds >= 0) {
    head.retry_after = std::chrono::seconds(std::min(seconds, 600L));
  }
  return head;
}

beast::tcp_stream& tcp_of(beast::tcp_stream& stream) { return stream; }
beast::tcp_stream& tcp_of(beast::ssl_stream<beast::tcp_stream>& stream) { return beast::get_lowest_layer(stream); }

/// Sends the request and reads the answer piece by piece.
template <class Stream>
tl::expected<HttpHead, HttpError> converse(Stream& stream, Waiter& waiter, const HttpRequest& request, const OnBody& on_body,
                                           Clock::time_point deadline, const std::stop_token& stop) {
  const auto arm = [&] { tcp_of(stream).expires_at(std::min(deadline, Clock::now() + request.idle_timeout)); };
  const auto broken = [&](const error_code& error) {
    return tl::unexpected(failure(error, HttpError::Kind::broken, request.url.host, stop));
  };
  http::request<http::string_body> message = message_of(request);
  arm();
  if (const error_code error = waiter.wait([&](auto handler) { http::async_write(stream, message, handler); })) return broken(error);

  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(boost::none);  // the reader decides when it has had enough
  arm();
  if (const error_code error = waiter.wait([&](auto handler) { http::async_read_header(stream, buffer, parser, handler); })) {
    return broken(error);
  }
  const HttpHead head = head_of(parser.get());
  std::array<char, 8192> piece{};
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    arm();
    error_code error = waiter.wait([&](auto handler) { http::async_read_some(stream, buffer, parser, handler); });
    if (error == http::error::need_buffer) error = {};
    const std::size_t bytes = piece.size() - parser.get().body().size;
    if (bytes > 0 && !on_body(head, std::string_view(piece.data(), bytes))) return head;
    // Many servers end TLS without saying goodbye; what arrived was whole if the parser says so.
    if (error && !parser.is_done()) return broken(error);
    if (Clock::now() >= deadline) return broken(beast::error::timeout);
  }
  return head;
}

/// The name, the connection and, for TLS, the handshake.
template <class Stream>
std::optional<HttpError> connect(asio::io_context& io, Stream& stream, Waiter& waiter, const HttpRequest& request,
                                 Clock::time_point deadline, const std::stop_token& stop) {
  const std::string where = request.url.host + ":" + request.url.port;
  asio::ip::tcp::resolver resolver(io);
  asio::ip::tcp::resolver::results_type addresses;
  const error_code resolved = waiter.wait([&](auto handler) {
    resolver.async_resolve(request.url.host, request.url.port, [&addresses, handler](const error_code& error, auto results) mutable {
      addresses = std::move(results);
      handler(error);
    });
  });
  if (resolved) return failure(resolved, HttpError::Kind::connect, where, stop);
  if (stop.stop_requested()) return HttpError{HttpError::Kind::cancelled, "cancelled"};
  tcp_of(stream).expires_at(std::min(deadline, Clock::now() + request.connect_timeout));
  const error_code connected = waiter.wait([&](auto handler) { tcp_of(stream).async_connect(addresses, handler); });
  if (connected) return failure(connected, HttpError::Kind::connect, where, stop);
  if constexpr (!std::is_same_v<Stream, beast::tcp_stream>) {
    stream.set_verify_callback(asio::ssl::host_name_verification(request.url.host));
    if (SSL_set_tlsext_host_name(stream.native_handle(), request.url.host.c_str()) != 1) {
      return HttpError{HttpError::Kind::tls, where + ": the host name can't be used for TLS"};
    }
    const error_code shaken =
        waiter.wait([&](auto handler) { stream.async_handshake(asio::ssl::stream_base::client, handler); });
    if (shaken) return failure(shaken, HttpError::Kind::tls, where, stop);
  }
  return std::nullopt;
}

template <class Stream>
tl::expected<HttpHead, HttpError> exchange_over(asio::io_context& io, Stream& stream, const HttpRequest& request,
                                                const OnBody& on_body, const std::stop_token& stop) {
  const std::stop_callback close(stop, [&io, &stream] { asio::post(io, [&stream] { tcp_of(stream).close(); }); });
  const Clock::time_point deadline = Clock::now() + request.total_timeout;
  Waiter waiter(io);
  if (std::optional<HttpError> error = connect(io, stream, waiter, request, deadline, stop)) return tl::unexpected(*std::move(error));
  return converse(stream, waiter, request, on_body, deadline, stop);
}

}  // namespace

tl::expected<Url, std::string> parse_url(std::string_view text) {
  Url url;
  if (text.starts_with("https://")) {
    url.tls = true;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return tl::unexpected(std::string("an address begins with http:// or https://"));
  }
  const std::size_t slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash);
  url.target = slash == text.size() ? "/" : std::string(text.substr(slash));
  if (authority.find('@') != std::string_view::npos) return tl::unexpected(std::string("a user name in an address is not supported"));
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return tl::unexpected(std::string("'[' without ']'"));
    url.host = authority.substr(1, close - 1);
    authority.remove_prefix(close + 1);
    if (authority.starts_with(':')) port = authority.substr(1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    if (colon < authority.size()) port = authority.substr(colon + 1);
  }
  if (url.host.empty()) return tl::unexpected(std::string("no host in the address"));
  unsigned number = url.tls ? 443 : 80;
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535) {
      return tl::unexpected("'" + std::string(port) + "' is not a port");
    }
  }
  for (const char c : url.target + url.host) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return tl::unexpected(std::string("a blank in the address"));
  }
  url.port = std::to_string(number);
  return url;
}

tl::expected<HttpHead, HttpError> exchange(const HttpRequest& request, const OnBody& on_body, std::stop_token stop) {
  if (stop.stop_requested()) return tl::unexpected(HttpError{HttpError::Kind::cancelled, "cancelled"});
  asio::io_context io(1);
  if (!request.url.tls) {
    beast::tcp_stream stream(io);
    return exchange_over(io, stream, request, on_body, stop);
  }
  asio::ssl::context tls(asio::ssl::context::tls_client);
  error_code error;
  tls.set_default_verify_paths(error);
  tls.set_verify_mode(asio::ssl::verify_peer);
  if (!request.ca_file.empty()) tls.load_verify_file(request.ca_file, error);
  if (error) return tl::unexpected(HttpError{HttpError::Kind::tls, request.ca_file + ": " + error.message()});
  beast::ssl_stream<beast::tcp_stream> stream(io, tls);
  return exchange_over(io, stream, request, on_body, stop);
}

}  // namespace fixpoint::agent::detail
