#include "server/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <csignal>
#include <future>
#include <list>
#include <thread>

#include "server/acp_connection.h"
#include "server/detail/connection.h"
#include "server/detail/listen.h"
#include "server/event_log.h"
#include "server/metrics.h"

namespace fixpoint::server {
namespace {

constexpr int kNetworkNice = -10;

namespace asio = boost::asio;
using boost::system::error_code;

std::string peer_address(const asio::ip::tcp::socket& socket) {
  error_code ignored;
  return socket.remote_endpoint(ignored).address().to_string();
}
std::string peer_address(const asio::local::stream_protocol::socket&) { return {}; }

void prepare(asio::ip::tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
}
void prepare(asio::local::stream_protocol::socket&) {}

bool wants_tls(const asio::ip::tcp::socket&) { return true; }
bool wants_tls(const asio::local::stream_protocol::socket&) { return false; }

void ignore(const std::exception_ptr&) {}

struct Files {
  std::shared_ptr<const TokenSet> tokens;   ///< null: no token is asked for
  std::shared_ptr<asio::ssl::context> tls;  ///< null: none
};

tl::expected<Files, std::string> read_files(const ServerOptions& options) {
  Files files;
  if (!options.token_file.empty()) {
    auto read = TokenSet::read(options.token_file);
    if (!read) return tl::unexpected("--tokens: " + read.error());
    files.tokens = std::make_shared<const TokenSet>(*std::move(read));
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) return tl::unexpected(std::string("--tls-cert and --tls-key go together"));
  if (!options.tls_certificate.empty()) {
    auto loaded = detail::load_tls(options.tls_certificate, options.tls_key);
    if (!loaded) return tl::unexpected(loaded.error());
    files.tls = *std::move(loaded);
  }
  return files;
}

tl::expected<std::vector<detail::Place>, std::string> find_places(const ServerOptions& options) {
  if (options.listen.empty()) return tl::unexpected(std::string("--listen: no address"));
  std::vector<detail::Place> places;
  for (const std::string& address : options.listen) {
    auto place = detail::find_place(address);
    if (!place) return tl::unexpected(place.error());
    if (!place->loopback() && options.token_file.empty()) {
      return tl::unexpected("'" + address + "' can be reached from other machines: tokens are needed (--tokens FILE; fixpoint token new makes one)");
    }
    places.push_back(*std::move(place));
  }
  return places;
}

}  // namespace

struct Server::Impl {
  Impl(ServerOptions given, Services& all, AcpHub* acp)
      : options(std::move(given)), services(all), workers(static_cast<std::size_t>(std::max(1, options.worker_threads))),
        shared{.options = options, .services = all, .hub = acp, .workers = workers} {}

  tl::expected<void, std::string> open();
  tl::expected<void, std::string> load();
  template <class Acceptor>
  static asio::awaitable<void> accept(Impl* self, Acceptor* acceptor);
  template <class Socket>
  void welcome(Socket socket);
  void turn_away(AnyStream::Socket socket, const Busy& busy);
  asio::awaitable<void> watch_signals();
  void begin_drain();
  void close_all();
  void check_done();

  ServerOptions options;
  Services& services;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{io.get_executor()};
  asio::thread_pool workers;
  std::list<detail::Listening> listening;
  std::vector<std::string> addresses;
  std::shared_ptr<asio::ssl::context> tls;
  detail::Shared shared;
  asio::steady_timer deadline{io};
  asio::signal_set signals{io};
  bool draining = false;
  std::promise<void> done;
  std::shared_future<void> over{done.get_future()};
  bool told_done = false;
  std::jthread thread;
};

tl::expected<void, std::string> Server::Impl::load() {
  auto files = read_files(options);
  if (!files) return tl::unexpected(files.error());
  shared.tokens = std::move(files->tokens);
  tls = std::move(files->tls);
  return {};
}

tl::expected<void, std::string> Server::Impl::open() {
  if (auto loaded = load(); !loaded) return loaded;
  const auto places = find_places(options);
  if (!places) return tl::unexpected(places.error());
  for (const detail::Place& place : *places) {
    auto bound = detail::bind(io, place, tls != nullptr);
    if (!bound) return tl::unexpected(bound.error());
    addresses.push_back(bound->address);
    listening.push_back(*std::move(bound));
  }
  for (detail::Listening& it : listening) {
    std::visit([this](auto& acceptor) { asio::co_spawn(io, accept(this, &acceptor), ignore); }, it.acceptor);
  }
  if (options.handle_signals) {
    signals.add(SIGTERM);
    signals.add(SIGINT);
    signals.add(SIGHUP);
    asio::co_spawn(io, watch_signals(), ignore);
  }
  return {};
}

template <class Acceptor>
asio::awaitable<void> Server::Impl::accept(Impl* self, Acceptor* acceptor) {
  asio::steady_timer pause(self->io);
  while (acceptor->is_open()) {
    auto [error, socket] = co_await acceptor->async_accept(asio::as_tuple(asio::use_awaitable));
    if (!error) {
      self->welcome(std::move(socket));
      continue;
    }
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    // Out of descriptors, most likely: connections that end give some back.
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

template <class Socket>
void Server::Impl::welcome(Socket socket) {
  prepare(socket);
  const std::string address = peer_address(socket);
  const bool with_tls = tls != nullptr && wants_tls(socket);
  AnyStream::Socket plain(std::move(socket));
  auto place = services.admission->connect_address(address);
  if (!place) {
    services.metrics->counter("connections_refused_total", "Sockets that were turned away because there were too many.").add();
    return with_tls ? void() : turn_away(std::move(plain), place.error());
  }
  AnyStream stream = with_tls ? AnyStream(std::move(plain), *tls) : AnyStream(std::move(plain));
  auto connection = std::make_shared<detail::Connection>(std::move(stream), address, *std::move(place), shared);
  if (draining) connection->begin_drain();
  asio::co_spawn(io, detail::Connection::run(std::move(connection)), [this](const std::exception_ptr& failure) {
    if (failure) services.log->write("connection_failed", {});
  });
}

/// A word of why, as far as the socket's buffer takes it at once; no memory is spent on who comes too often.
void Server::Impl::turn_away(AnyStream::Socket socket, const Busy& busy) {
  const std::string body = ApiError{.status = 429, .message = busy.detail, .code = busy.limit}.body();
  const std::string text = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(AnyStream::Socket::shutdown_send, ignored);
}

asio::awaitable<void> Server::Impl::watch_signals() {
  while (!told_done) {  // a drain with nobody connected is over at once, and nothing would end another wait
    const auto [error, number] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    if (number == SIGHUP) {
      const auto loaded = load();
      services.log->write("reload", {{"ok", loaded.has_value()}, {"detail", loaded ? "" : std::string_view(loaded.error())}});
    } else if (draining) {
      close_all();
    } else {
      begin_drain();
    }
  }
}

void Server::Impl::begin_drain() {
  if (draining) return;
  draining = true;
  services.draining = true;
  if (shared.hub != nullptr) shared.hub->drain();  // clients resume at the next server
  services.log->write("drain", {{"connections", shared.connections.size()}});
  for (detail::Listening& it : listening) it.close();
  shared.connection_gone = [this] { check_done(); };
  const auto connections = shared.connections;
  for (detail::Connection* it : connections) it->begin_drain();
  deadline.expires_after(options.drain_deadline);
  deadline.async_wait([this](const error_code& error) {
    if (!error) close_all();
  });
  check_done();
}

void Server::Impl::close_all() {
  const auto connections = shared.connections;
  for (detail::Connection* it : connections) it->close();
}

void Server::Impl::check_done() {
  if (told_done || !shared.connections.empty()) return;
  told_done = true;
  deadline.cancel();
  error_code ignored;
  signals.cancel(ignored);
  guard.reset();
  done.set_value();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

tl::expected<void, std::string> Server::check(const ServerOptions& options) {
  if (const auto files = read_files(options); !files) return tl::unexpected(files.error());
  if (const auto places = find_places(options); !places) return tl::unexpected(places.error());
  return {};
}

tl::expected<std::unique_ptr<Server>, std::string> Server::start(ServerOptions options, Services& services, AcpHub* hub) {
  auto impl = std::make_unique<Impl>(std::move(options), services, hub);
  if (auto opened = impl->open(); !opened) return tl::unexpected(opened.error());
  services.draining = false;
  Impl* const raw = impl.get();
  impl->thread = std::jthread([raw] {
    // Short turns that everybody waits for come before the long ones of sessions, where the system lets us say so.
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNetworkNice);
    raw->io.run();
  });
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() {
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->begin_drain();
    impl->close_all();
  });
  impl_->thread.join();
  impl_->workers.join();
}

const std::vector<std::string>& Server::addresses() const { return impl_->addresses; }

tl::expected<void, std::string> Server::reload() {
  std::promise<tl::expected<void, std::string>> result;
  auto future = result.get_future();
  if (impl_->over.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return tl::unexpected(std::string("the server has ended"));
  asio::post(impl_->io, [impl = impl_.get(), &result] { result.set_value(impl->load()); });
  return future.get();
}

void Server::drain() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->begin_drain(); });
}

void Server::wait() { impl_->over.wait(); }

}  // namespace fixpoint::server
