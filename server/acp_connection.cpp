#include "server/acp_connection.h"

#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <exception>
#include <functional>
#include <random>

#include "server/detail/tuple_token.h"

namespace fixpoint::server {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {


std::string connection_id() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", static_cast<unsigned>(random()), static_cast<unsigned>(random()));
  return text;
}

/// When the event was made that an entry tells of; nothing for others, and for what is replayed.
Clock::time_point made_at(const Outbox::Entry& entry) {
  const auto* numbered = std::get_if<Outbox::Numbered>(&entry);
  return numbered == nullptr ? Clock::time_point() : numbered->update->made;
}

}  // namespace

/// The state of one connection. Its reader and its writer are two coroutines on the network's thread; the hub's threads only
/// wake it. What a message asks for may read and write the journal, and is done by a worker, one thing after another.
class AcpConnection : public std::enable_shared_from_this<AcpConnection> {
 public:
  AcpConnection(WebSocket& socket, AcpHub& hub, asio::thread_pool& workers)
      : socket_(socket), hub_(hub), executor_(socket.get_executor()), desk_(asio::make_strand(workers)), timer_(executor_), ended_(executor_) {
    timer_.expires_at(Clock::time_point::max());
    ended_.expires_at(Clock::time_point::max());
  }

  asio::awaitable<void> run(Principal who) {
    const std::shared_ptr<AcpConnection> self = shared_from_this();
    outbox_ = std::make_shared<Outbox>([weak = weak_from_this()] {
      if (const auto it = weak.lock()) it->wake();
    }, hub_.options().outbox);
    peer_ = std::make_unique<AcpPeer>(hub_.sessions(), std::move(who), outbox_, hub_.options().peer);
    last_heard_ = Clock::now();
    asio::co_spawn(executor_, write(self), asio::detached);
    bool at_fault = false;
    try {
      co_await read();
    } catch (const std::exception&) {
      at_fault = true;
    }
    if (at_fault) {  // the writer says so; the session goes on without this connection
      close(CloseCode::internal);
      while (!writer_ended_) (void)co_await ended_.async_wait(kTuple);
    }
    done_ = true;
    timer_.cancel();
    while (!writer_ended_) (void)co_await ended_.async_wait(kTuple);
    std::function<void()> leave = [self] { self->peer_.reset(); };
    co_await at_desk(std::move(leave));
  }

  void enter() {
    const std::scoped_lock lock(hub_.mutex_);
    hub_.open_.insert(shared_from_this());
  }
  void leave() {
    const std::scoped_lock lock(hub_.mutex_);
    hub_.open_.erase(shared_from_this());
  }

  /// From any thread.
  void close(CloseCode code) {
    int none = 0;
    close_.compare_exchange_strong(none, static_cast<int>(code));
    wake();
  }

 private:
  void wake() {
    if (woken_.exchange(true)) return;
    asio::post(executor_, [self = shared_from_this()] { self->timer_.cancel(); });
  }

  asio::awaitable<void> read() {
    boost::beast::flat_buffer buffer;
    while (!done_) {
      const auto [error, size] = co_await socket_.async_read(buffer, kTuple);
      if (error) co_return;
      last_heard_ = Clock::now();
      std::function<void()> work;
      if (socket_.got_binary()) {
        work = [self = shared_from_this()] { self->peer_->refuse_binary(); };
      } else {
        std::string text(static_cast<const char*>(buffer.data().data()), buffer.size());
        work = [self = shared_from_this(), text = std::move(text)] { self->peer_->receive(text); };
      }
      co_await at_desk(std::move(work));
      buffer.consume(size);
      if (buffer.capacity() > kKeptBytes) buffer = boost::beast::flat_buffer();  // one large message does not cost memory for ever
    }
  }

  asio::awaitable<void> write([[maybe_unused]] std::shared_ptr<AcpConnection> self) {  // kept alive by its frame
    CloseCode code = CloseCode::normal;
    while (!done_) {
      woken_ = false;
      if (close_ != 0) {
        code = static_cast<CloseCode>(close_.load());
        break;
      }
      if (outbox_->behind()) {
        code = CloseCode::behind;
        break;
      }
      auto entry = outbox_->take();
      if (entry) {
        const Clock::time_point made = made_at(*entry);
        std::optional<std::string> text;
        try {
          text = co_await render(*std::move(entry));
        } catch (const std::exception&) {
          code = CloseCode::internal;
          break;
        }
        if (text && !co_await send(*text)) break;
        if (made != Clock::time_point() && hub_.options().latency != nullptr) {
          hub_.options().latency->observe(std::chrono::duration<double>(Clock::now() - made).count());
        }
        continue;
      }
      const Clock::time_point idle_at = last_heard_ + hub_.options().idle;
      if (!idle_) last_heard_ = Clock::now();
      if (Clock::now() >= idle_at && idle_) {
        code = CloseCode::idle;
        break;
      }
      timer_.expires_at(std::max(idle_at, Clock::now() + std::chrono::milliseconds(1)));
      if (woken_ || done_) continue;  // told before it slept
      (void)co_await timer_.async_wait(kTuple);
    }
    if (!done_) co_await say_goodbye(code);
    writer_ended_ = true;
    ended_.cancel();
  }

  /// Done by a worker; what it needs is its own, since this frame may be gone before it. What it throws is thrown here.
  asio::awaitable<void> at_desk(std::function<void()> work) {
    const auto begin = [](auto handler, auto desk, auto self, auto what) {
      asio::post(desk, [handler = std::move(handler), self = std::move(self), what = std::move(what)]() mutable {
        std::exception_ptr failed;
        try {
          what();
        } catch (...) {
          failed = std::current_exception();
        }
        what = nullptr;
        self->idle_ = self->peer_ == nullptr || self->peer_->idle();
        auto executor = asio::get_associated_executor(handler, self->executor_);
        asio::post(executor, [handler = std::move(handler), failed]() mutable { std::move(handler)(failed); });
      });
    };
    co_await asio::async_initiate<decltype(asio::use_awaitable), void(std::exception_ptr)>(begin, asio::use_awaitable, desk_, shared_from_this(), std::move(work));
  }

  /// The end of a turn is the peer's to deal with; updates and messages are only text.
  asio::awaitable<std::optional<std::string>> render(Outbox::Entry entry) {
    if (!std::holds_alternative<TurnEnd>(entry)) co_return peer_->render(std::move(entry));
    const auto text = std::make_shared<std::optional<std::string>>();
    std::function<void()> work = [self = shared_from_this(), text, entry = std::move(entry)] { *text = self->peer_->render(entry); };
    co_await at_desk(std::move(work));
    co_return std::move(*text);
  }

  asio::awaitable<bool> send(const std::string& text) {
    asio::steady_timer limit(executor_, hub_.options().write);
    limit.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->socket_.next_layer().close();
    });
    const auto [error, size] = co_await socket_.async_write(asio::buffer(text), kTuple);
    limit.cancel();
    co_return !error;
  }

  asio::awaitable<void> say_goodbye(CloseCode code) {
    websocket::close_reason reason(static_cast<std::uint16_t>(code));
    switch (code) {
      case CloseCode::going_away: reason.reason = "the server ends; connect again and resume"; break;
      case CloseCode::behind: reason.reason = "too much waits to be read; connect again and resume"; break;
      case CloseCode::idle: reason.reason = "nothing happened for long"; break;
      case CloseCode::internal: reason.reason = "a fault of the server's; connect again and resume"; break;
      case CloseCode::normal: break;
    }
    asio::steady_timer limit(executor_, kGoodbye);
    limit.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->socket_.next_layer().close();
    });
    (void)co_await socket_.async_close(reason, kTuple);
    limit.cancel();
    socket_.next_layer().close();
  }

  static constexpr std::size_t kKeptBytes = 64 << 10;
  static constexpr std::chrono::seconds kGoodbye{5};

  WebSocket& socket_;
  AcpHub& hub_;
  asio::any_io_executor executor_;
  asio::strand<asio::thread_pool::executor_type> desk_;
  asio::steady_timer timer_, ended_;
  std::shared_ptr<Outbox> outbox_;
  std::unique_ptr<AcpPeer> peer_;  // used at the desk
  Clock::time_point last_heard_;
  bool done_ = false;
  bool writer_ended_ = false;
  std::atomic<bool> idle_{true};
  std::atomic<bool> woken_{false};
  std::atomic<int> close_{0};
};

void AcpHub::drain() {
  std::set<std::shared_ptr<AcpConnection>> open;
  {
    const std::scoped_lock lock(mutex_);
    open = open_;
  }
  for (const auto& connection : open) connection->close(CloseCode::going_away);
}

std::size_t AcpHub::connections() const {
  const std::scoped_lock lock(mutex_);
  return open_.size();
}

asio::awaitable<void> run_acp_connection(WebSocket& socket, const boost::beast::http::request<boost::beast::http::string_body>& head,
                                         Principal who, AcpHub& hub, asio::thread_pool& workers) {
  const AcpHub::Options& options = hub.options();
  socket.set_option(websocket::stream_base::timeout{.handshake_timeout = std::chrono::seconds(10), .idle_timeout = 2 * options.ping, .keep_alive_pings = true});
  socket.read_message_max(options.peer.limits.bytes);
  socket.set_option(websocket::stream_base::decorator([id = connection_id()](websocket::response_type& response) {
    response.set("Acp-Connection-Id", id);
    response.set(boost::beast::http::field::server, "fixpoint");
  }));
  const auto [error] = co_await socket.async_accept(head, kTuple);
  if (error) co_return;
  socket.text(true);
  const auto connection = std::make_shared<AcpConnection>(socket, hub, workers);
  connection->enter();
  co_await connection->run(std::move(who));
  connection->leave();
}

}  // namespace fixpoint::server
