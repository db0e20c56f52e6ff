#include "server/acp_bridge.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "server/acp_bridge_book.h"
#include "server/any_stream.h"
#include "server/detail/tuple_token.h"

namespace fixpoint::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxMessage = std::size_t{64} << 20;
constexpr std::chrono::seconds kConnectTime{10};

struct Address {
  bool tls = false;
  std::string host, port, path;
};

std::optional<Address> parse_url(const std::string& url) {
  Address address;
  std::string_view rest = url;
  if (rest.starts_with("wss://")) {
    address.tls = true;
    rest.remove_prefix(6);
  } else if (rest.starts_with("ws://")) {
    rest.remove_prefix(5);
  } else {
    return std::nullopt;
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  address.path = slash == rest.size() ? "/acp" : std::string(rest.substr(slash));
  std::string_view authority = rest.substr(0, slash);
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  address.port = has_port ? std::string(authority.substr(colon + 1)) : address.tls ? "443" : "80";
  std::string_view host = has_port ? authority.substr(0, colon) : authority;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  address.host = host;
  if (address.host.empty() || address.port.empty()) return std::nullopt;
  return address;
}

/// One thread; a coroutine for each direction.
class Bridge {
 public:
  Bridge(BridgeOptions options, Address address, int input, int output)
      : options_(std::move(options)), address_(std::move(address)), output_(output), in_(io_, ::dup(input)), wake_(io_), tls_(asio::ssl::context::tls_client) {
    wake_.expires_at(Clock::time_point::max());
    error_code ignored;
    tls_.set_default_verify_paths(ignored);
    tls_.set_verify_mode(asio::ssl::verify_peer);
  }

  std::string run() {
    error_code unread;
    if (!options_.ca_file.empty()) tls_.load_verify_file(options_.ca_file, unread);
    if (unread) return options_.ca_file + ": no certificate of an authority: " + unread.message();
    asio::co_spawn(io_, read_editor(), asio::detached);
    asio::co_spawn(io_, talk_for_ever(), asio::detached);
    io_.run();
    return error_;
  }

 private:
  void end(std::string error) {
    if (ended_) return;
    ended_ = true;
    error_ = std::move(error);
    io_.stop();
  }

  bool to_editor(std::string text) {
    text += '\n';
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t written = ::write(output_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        end("");
        return false;
      }
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  asio::awaitable<void> read_editor() {
    std::string text;
    for (;;) {
      const auto [error, size] = co_await asio::async_read_until(in_, asio::dynamic_buffer(text, kMaxMessage), '\n', kTuple);
      if (error) {
        end(error == asio::error::not_found ? "a line of the editor is too long" : "");
        co_return;
      }
      std::string_view line(text.data(), size - 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) {
        // While there is no connection, requests are kept by the book; what is left waits here.
        auto message = book_.from_editor(line);
        if (message && (connected_ || !message->bound)) outgoing_.push_back(*std::move(message));
        wake_.cancel();
      }
      text.erase(0, size);
    }
  }

  asio::awaitable<void> talk_for_ever() {
    auto pause = std::chrono::milliseconds(100);
    Clock::time_point lost = Clock::now();
    bool first = true;
    while (!ended_) {
      std::string problem;
      bool fatal = false;
      if (auto stream = co_await connect(problem, fatal)) {
        WebSocket socket(*std::move(stream));
        co_await talk(socket, problem, fatal);
      }
      if (was_connected_) {
        was_connected_ = false;
        connected_ = false;
        first = false;
        lost = Clock::now();
        pause = std::chrono::milliseconds(100);
        std::erase_if(outgoing_, [](const AcpBridgeBook::Line& line) { return line.bound; });
        for (std::string& line : book_.disconnected()) {
          if (!to_editor(std::move(line))) co_return;
        }
      }
      if (fatal || first || Clock::now() - lost > options_.patience) {
        end(problem);
        co_return;
      }
      asio::steady_timer timer(io_, pause);
      (void)co_await timer.async_wait(kTuple);
      pause = std::min(2 * pause, std::chrono::milliseconds(2'000));
    }
  }

  /// The name, the connection and, for wss://, the handshake.
  asio::awaitable<std::optional<AnyStream>> connect(std::string& problem, bool& fatal) {
    tcp::resolver resolver(io_);
    const auto [unknown, places] = co_await resolver.async_resolve(address_.host, address_.port, kTuple);
    if (unknown) {
      problem = options_.url + ": " + unknown.message();
      co_return std::nullopt;
    }
    struct Attempt {
      tcp::socket socket;
      std::optional<AnyStream> stream;
      bool late = false;
    };
    const auto attempt = std::make_shared<Attempt>(Attempt{.socket = tcp::socket(io_)});
    asio::steady_timer limit(io_, kConnectTime);
    limit.async_wait([attempt](const error_code& error) {
      if (error) return;
      attempt->late = true;
      error_code ignored;
      if (attempt->stream) attempt->stream->close();
      attempt->socket.close(ignored);
    });
    const auto failed = [&](const error_code& error) {
      limit.cancel();
      problem = options_.url + ": " + (attempt->late ? "no answer in time" : error.message());
      return std::nullopt;
    };
    const auto [refused, place] = co_await asio::async_connect(attempt->socket, places, kTuple);
    if (refused) co_return failed(refused);
    AnyStream::Socket socket(std::move(attempt->socket));
    attempt->stream = address_.tls ? AnyStream(std::move(socket), tls_) : AnyStream(std::move(socket));
    const auto [untrusted] = co_await attempt->stream->async_handshake(address_.host, kTuple);
    if (untrusted) {
      fatal = !attempt->late;
      co_return failed(untrusted);
    }
    limit.cancel();
    co_return std::exchange(attempt->stream, std::nullopt);
  }

  asio::awaitable<void> talk(WebSocket& socket, std::string& problem, bool& fatal) {
    socket.set_option(websocket::stream_base::timeout{.handshake_timeout = std::chrono::seconds(10), .idle_timeout = std::chrono::seconds(60), .keep_alive_pings = true});
    socket.set_option(websocket::stream_base::decorator([token = options_.token](websocket::request_type& request) {
      if (!token.empty()) request.set(beast::http::field::authorization, "Bearer " + token);
    }));
    socket.read_message_max(kMaxMessage);
    websocket::response_type response;
    const std::string host = address_.host + ":" + address_.port;
    const auto [declined] = co_await socket.async_handshake(response, host, address_.path, kTuple);
    if (declined) {
      problem = options_.url + ": " + declined.message();
      if (declined == websocket::error::upgrade_declined) {
        problem += " (HTTP " + std::to_string(response.result_int()) + ")";
        fatal = response.result_int() >= 400 && response.result_int() < 429;
      }
      co_return;
    }
    socket.text(true);
    was_connected_ = connected_ = true;
    std::deque<AcpBridgeBook::Line> begin;
    for (std::string& line : book_.reconnected()) begin.push_back({std::move(line), true});
    std::move(outgoing_.begin(), outgoing_.end(), std::back_inserter(begin));
    outgoing_ = std::move(begin);
    broken_ = false;
    writer_ended_ = false;
    asio::co_spawn(io_, write_server(socket), asio::detached);
    co_await read_server(socket, problem);
    broken_ = true;
    while (!writer_ended_ && !ended_) {
      wake_.cancel();
      asio::steady_timer timer(io_, std::chrono::milliseconds(1));
      (void)co_await timer.async_wait(kTuple);
    }
  }

  asio::awaitable<void> read_server(WebSocket& socket, std::string& problem) {
    beast::flat_buffer buffer;
    while (!ended_) {
      const auto [error, size] = co_await socket.async_read(buffer, kTuple);
      if (error) {
        problem = "the server closed the connection: " + (socket.reason().reason.empty() ? error.message() : std::string(socket.reason().reason.c_str()));
        co_return;
      }
      auto line = book_.from_server(std::string_view(static_cast<const char*>(buffer.data().data()), size));
      buffer.consume(size);
      if (line && !to_editor(*std::move(line))) co_return;
    }
  }

  asio::awaitable<void> write_server(WebSocket& socket) {
    while (!broken_ && !ended_) {
      if (outgoing_.empty()) {
        wake_.expires_at(Clock::time_point::max());
        (void)co_await wake_.async_wait(kTuple);
        continue;
      }
      const std::string text = std::move(outgoing_.front().text);
      outgoing_.pop_front();
      const auto [error, size] = co_await socket.async_write(asio::buffer(text), kTuple);
      if (error) break;
    }
    writer_ended_ = true;
  }

  const BridgeOptions options_;
  const Address address_;
  const int output_;
  asio::io_context io_{1};
  asio::posix::stream_descriptor in_;
  asio::steady_timer wake_;
  asio::ssl::context tls_;
  AcpBridgeBook book_;
  std::deque<AcpBridgeBook::Line> outgoing_;
  bool connected_ = false, was_connected_ = false, broken_ = false, writer_ended_ = true, ended_ = false;
  std::string error_;
};

}  // namespace

std::string run_acp_bridge(const BridgeOptions& options, int input, int output) {
  const auto address = parse_url(options.url);
  if (!address) return "--url: not ws://HOST:PORT/acp or wss://…: " + options.url;
  return Bridge(options, *address, input, output).run();
}

}  // namespace fixpoint::server
