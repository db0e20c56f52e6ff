#include "server/detail/connection.h"

#include <algorithm>
#include <boost/beast/websocket.hpp>

#include "server/acp_connection.h"
#include "server/detail/tuple_token.h"
#include "server/event_log.h"
#include "server/metrics.h"

namespace fixpoint::server::detail {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::size_t kSmallRead = 4 * 1024;
constexpr std::size_t kBodyRead = 64 * 1024;
constexpr std::chrono::seconds kLinger{1};
constexpr std::size_t kMaxThrown = 1024 * 1024;
constexpr std::size_t kMaxAhead = 64 * 1024;  ///< of further requests, while one is being answered

ApiError parse_error(const error_code& error) {
  if (error == http::error::header_limit) return {.status = 431, .message = "the head of the request is too long"};
  if (error == http::error::body_limit) return {.status = 413, .message = "the body is too long"};
  return {.status = 400, .message = "this is no HTTP request: " + error.message()};
}

std::string chunk(const std::string& data) {
  char size[20];
  std::snprintf(size, sizeof(size), "%zx\r\n", data.size());
  return size + data + "\r\n";
}

}  // namespace

Connection::Connection(AnyStream stream, std::string address, Admission::Place place, Shared& shared)
    : stream_(std::move(stream)), executor_(stream_.get_executor()), address_(std::move(address)), place_(std::move(place)), shared_(&shared),
      wake_(executor_), write_timer_(executor_) {
  shared_->connections.insert(this);
}

Connection::~Connection() {
  shared_->connections.erase(this);
  if (shared_->connections.empty() && shared_->connection_gone) shared_->connection_gone();
}

void Connection::begin_drain() {
  draining_ = true;
  if (!busy_) close();
}

void Connection::close() {
  closed_ = true;
  (web_socket_ ? web_socket_->next_layer() : stream_).close();
  wake();
}

asio::awaitable<void> Connection::run(std::shared_ptr<Connection> self) {
  co_await self->serve();
  if (!self->web_socket_ && !self->closed_) co_await self->linger();
  self->close();
}

/// Closing a socket on unread bytes would take the answer back that was just written: what still comes is read and thrown
/// away for a moment.
asio::awaitable<void> Connection::linger() {
  error_code ignored;
  stream_.socket().shutdown(AnyStream::Socket::shutdown_send, ignored);
  const Clock::time_point deadline = Clock::now() + kLinger;
  for (std::size_t thrown = 0; thrown < kMaxThrown;) {
    thrown += buffer_.size();
    buffer_.consume(buffer_.size());
    const bool more = co_await read_more(deadline);
    if (!more) co_return;
  }
}

asio::awaitable<void> Connection::serve() {
  if (stream_.is_tls()) {
    // The timer closes the socket under a handshake that takes too long.
    const std::uint64_t id = ++write_id_;
    write_timer_.expires_after(shared_->options.http.head_timeout);
    write_timer_.async_wait([self = shared_from_this(), id](const error_code& error) {
      if (!error && self->write_id_ == id) self->close();
    });
    const auto [error] = co_await stream_.async_handshake(std::nullopt, kTuple);
    ++write_id_;
    write_timer_.cancel();
    if (error) co_return;
  }
  while (!closed_) {
    busy_ = false;
    if (draining_) co_return;
    const bool got = co_await read_request();
    if (!got) co_return;
    busy_ = true;
    fresh_ = false;
    if (is_upgrade_) {
      co_await upgrade();
      co_return;
    }
    const bool more = co_await answer();
    if (!more) co_return;
  }
}

asio::awaitable<bool> Connection::sleep_until(Clock::time_point time) {
  wake_.expires_at(time);
  const auto [error] = co_await wake_.async_wait(kTuple);
  co_return error == asio::error::operation_aborted;
}

void Connection::start_read() {
  if (reading_ || closed_ || buffer_.size() > kMaxAhead + shared_->options.http.header_bytes) return;
  reading_ = true;
  const bool body = parser_ && parser_->is_header_done() && !parser_->is_done();
  stream_.async_read_some(buffer_.prepare(body ? kBodyRead : kSmallRead), [self = shared_from_this()](const error_code& error, std::size_t size) {
    self->reading_ = false;
    if (error) {
      self->closed_ = true;
    } else {
      self->buffer_.commit(size);
    }
    self->wake();
  });
}

asio::awaitable<bool> Connection::read_more(Clock::time_point deadline) {
  start_read();
  while (reading_ && !closed_) {
    const bool woken = co_await sleep_until(deadline);
    if (!woken && reading_) {
      timed_out_ = true;
      co_return false;
    }
  }
  co_return !closed_;
}

asio::awaitable<bool> Connection::read_request() {
  const HttpLimits& limits = shared_->options.http;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser_->body_limit(limits.body_bytes);
  parser_->eager(true);
  head_checked_ = is_upgrade_ = timed_out_ = false;
  route_ = nullptr;
  request_ = std::make_shared<HttpRequest>();
  // A new connection must speak at once; one that has spoken may rest. The clock for a head begins with its first byte.
  Clock::time_point deadline = Clock::now() + (fresh_ ? limits.head_timeout : limits.idle_timeout);
  bool begun = false;
  while (true) {
    if (buffer_.size() > 0) {
      if (!begun) {
        begun = busy_ = true;
        request_->arrived = Clock::now();
        request_->trace = new_trace();  // also of a request that is refused before its head can be read
        request_->id = request_->trace.span_id;
        if (!fresh_) deadline = request_->arrived + limits.head_timeout;
      }
      const std::size_t before = buffer_.size();
      const bool good = co_await parse_some(deadline);
      if (!good) co_return false;
      if (parser_->is_done()) co_return true;
      if (buffer_.size() > 0 && buffer_.size() < before) continue;
    }
    const bool more = co_await read_more(deadline);
    if (more) continue;
    if (timed_out_ && begun) {
      HttpResponse late = ApiError{.status = 408, .message = "the request did not arrive in time"}.response();
      co_await refuse(std::move(late));
    }
    co_return false;
  }
}

/// False: the request was refused.
asio::awaitable<bool> Connection::parse_some(Clock::time_point& deadline) {
  error_code error;
  const std::size_t used = parser_->put(buffer_.data(), error);
  buffer_.consume(used);
  if (error && error != http::error::need_more) {
    HttpResponse response = parse_error(error).response();
    co_await refuse(std::move(response));
    co_return false;
  }
  if (!parser_->is_header_done() || head_checked_) co_return true;
  head_checked_ = true;
  deadline = Clock::now() + shared_->options.http.body_timeout;
  std::optional<HttpResponse> refused = check_head();
  if (refused) {
    HttpResponse response = *std::move(refused);
    co_await refuse(std::move(response));
    co_return false;
  }
  if (!parser_->is_done() && beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
    std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    co_return co_await write(std::move(go_on));
  }
  co_return true;
}

std::optional<HttpResponse> Connection::check_head() {
  const auto& message = parser_->get();
  request_->method = std::string(message.method_string());
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request_->headers.emplace_back(std::move(name), std::string(field.value()));
  }
  if (const auto parent = parse_traceparent(request_->header("traceparent"))) {
    request_->trace = child_of(*parent);
    request_->id = request_->trace.span_id;
  }
  auto target = parse_target(message.target());
  if (!target) return ApiError{.status = 400, .message = "the request's target is no path"}.response();
  request_->path = std::move(target->path);
  request_->query = std::move(target->query);
  if (auto refused = check_origin()) return refused;
  if (request_->method == "OPTIONS" && !request_->header("origin").empty()) return preflight();

  const bool acp = request_->path == "/acp";
  RouteMatch match = find_route(request_->method, request_->path);
  route_ = match.route;
  request_->parameters = std::move(match.parameters);
  if (auto refused = identify()) return refused;
  const Right right = acp ? Right::use : route_ != nullptr ? route_->right : Right::nothing;
  if (!has_right(request_->who, right)) return ApiError{.status = 403, .message = "this token does not have the role for that"}.response();
  if (acp) {
    is_upgrade_ = beast::websocket::is_upgrade(message);
    if (is_upgrade_) return std::nullopt;
    HttpResponse response = ApiError{.status = 426, .message = "/acp speaks WebSocket"}.response();
    response.headers.emplace_back("Upgrade", "websocket");
    return response;
  }
  if (route_ != nullptr) return std::nullopt;
  if (match.allowed.empty()) return ApiError{.status = 404, .message = "there is nothing at " + request_->path}.response();
  HttpResponse response = ApiError{.status = 405, .message = "this path knows " + match.allowed}.response();
  response.headers.emplace_back("Allow", match.allowed);
  return response;
}

/// Who asks. Routes that are open to everybody need nothing.
std::optional<HttpResponse> Connection::identify() {
  if (shared_->tokens == nullptr) {
    request_->who = local_principal();
    return std::nullopt;
  }
  const auto secret = bearer(request_->header("authorization"));
  auto who = secret ? shared_->tokens->find(*secret) : std::nullopt;
  if (!who) {
    if (route_ != nullptr && route_->right == Right::nothing) return std::nullopt;
    return ApiError{.status = 401, .message = secret ? "this token is not known" : "a token is needed: Authorization: Bearer …", .code = "invalid_api_key"}.response();
  }
  request_->who = *std::move(who);
  if (counted_token_ != request_->who.token_id) {
    auto place = shared_->services.admission->connect_token(request_->who);
    if (!place) return ApiError{.status = 429, .message = place.error().detail, .code = place.error().limit, .retry_after = place.error().retry_after}.response();
    token_place_ = *std::move(place);
    counted_token_ = request_->who.token_id;
  }
  return std::nullopt;
}

/// Web pages may call only where they are listed. Without tokens the Host must be a loopback name as well: a page's own name
/// may be made to lead here.
std::optional<HttpResponse> Connection::check_origin() {
  const std::string_view origin = request_->header("origin");
  const auto& allowed = shared_->options.origins;
  if (!origin.empty() && std::find(allowed.begin(), allowed.end(), origin) == allowed.end()) {
    return ApiError{.status = 403, .message = "web pages of this origin may not call", .code = "origin"}.response();
  }
  std::string_view host = request_->header("host");
  if (shared_->tokens != nullptr || host.empty() || address_.empty()) return std::nullopt;
  if (const std::size_t port = host.rfind(':'); port != std::string_view::npos && host.find(']', port) == std::string_view::npos) host = host.substr(0, port);
  if (host == "localhost" || host == "[::1]" || host.starts_with("127.")) return std::nullopt;
  return ApiError{.status = 403, .message = "the Host header must be a loopback name where no token is asked for", .code = "host"}.response();
}

HttpResponse Connection::preflight() const {
  return {.status = 204, .content_type = "", .headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                                                         {"Access-Control-Allow-Headers", "authorization, content-type, traceparent"},
                                                         {"Access-Control-Max-Age", "600"}}};
}

std::string Connection::head(int status, const std::string& content_type, const Headers& headers, bool keep_alive) const {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason_phrase(status)) + "\r\n";
  if (!content_type.empty()) out += "Content-Type: " + content_type + "\r\n";
  for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
  if (!request_->id.empty()) out += "X-Request-Id: " + request_->id + "\r\n";
  if (const std::string_view origin = request_->header("origin"); !origin.empty() && status != 403) {
    out += "Access-Control-Allow-Origin: " + std::string(origin) + "\r\nVary: Origin\r\n";
  }
  return out + (keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
}

void Connection::note(int status) {
  const std::string route = route_ != nullptr ? std::string(route_->pattern) : "other";
  const double seconds = std::chrono::duration<double>(Clock::now() - request_->arrived).count();
  shared_->services.metrics->counter("http_requests_total", "HTTP requests by route and status.", {{"route", route}, {"status", std::to_string(status)}}).add();
  shared_->services.log->write("http_request", {{"request", request_->id}, {"trace", request_->trace.trace_id}, {"method", request_->method},
                                                {"path", request_->path}, {"status", status}, {"seconds", seconds}, {"address", address_},
                                                {"tenant", request_->who.tenant}, {"token", request_->who.token_id}});
  if (shared_->services.tracer != nullptr && request_->trace.sampled && !request_->method.empty()) {
    const auto end = std::chrono::system_clock::now();
    Span span{.context = request_->trace, .name = request_->method + " " + route, .end = end};
    if (const auto parent = parse_traceparent(request_->header("traceparent"))) span.parent_span_id = parent->span_id;
    span.begin = end - std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(seconds));
    span.attributes = {{"http.route", route}, {"http.response.status_code", std::to_string(status)}, {"fixpoint.tenant", request_->who.tenant}};
    span.failed = status >= 500;
    shared_->services.tracer->finish(std::move(span));
  }
}

/// Answers and ends the connection: what else comes on it is not understood.
asio::awaitable<bool> Connection::refuse(HttpResponse response) {
  co_await respond(response, false);
  co_return false;
}

asio::awaitable<bool> Connection::respond(const HttpResponse& response, bool keep_alive) {
  std::string out = head(response.status, response.content_type, response.headers, keep_alive);
  if (response.status != 204) out += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  out += "\r\n";
  if (request_->method != "HEAD") out += response.body;
  note(response.status);
  const bool written = co_await write(std::move(out));
  co_return written && keep_alive;
}

asio::awaitable<bool> Connection::write(std::string data) {
  if (closed_) co_return false;
  const std::uint64_t id = ++write_id_;
  write_timer_.expires_after(shared_->options.http.write_timeout);
  write_timer_.async_wait([self = shared_from_this(), id](const error_code& error) {
    if (!error && self->write_id_ == id) self->close();
  });
  const auto [error, size] = co_await asio::async_write(stream_, asio::buffer(data), kTuple);
  ++write_id_;
  write_timer_.cancel();
  co_return !error;
}

/// Runs the handler on a worker's thread. Other threads hold the connection weakly: it must die on its own.
asio::awaitable<Answer> Connection::work() {
  const auto result = std::make_shared<std::optional<Answer>>();
  const std::weak_ptr<Connection> weak = weak_from_this();
  const auto executor = executor_;
  std::function<void()> wake_up = [weak, executor] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->wake();
    });
  };
  const auto handle = route_->handle;
  Services* const services = &shared_->services;
  auto job = [weak, executor, result, handle, services, request = request_, wake_up = std::move(wake_up)] {
    std::optional<Answer> made;
    try {
      made = handle(*request, *services, wake_up);
    } catch (const std::exception& error) {
      made = ApiError{.status = 500, .message = "internal error"}.response();
      services->log->write("handler_failed", {{"request", request->id}, {"detail", error.what()}});
    }
    asio::post(executor, [weak, result, made = std::move(made)]() mutable {
      *result = std::move(made);
      if (const auto self = weak.lock()) self->wake();
    });
  };
  asio::post(shared_->workers, std::move(job));
  while (!*result) co_await sleep_until(Clock::time_point::max());
  Answer answer = std::move(**result);
  co_return std::move(answer);
}

asio::awaitable<bool> Connection::answer() {
  request_->body = std::move(parser_->get().body());
  start_read();
  Answer answer = co_await work();
  if (const auto* response = std::get_if<HttpResponse>(&answer)) {
    co_return co_await respond(*response, parser_->get().keep_alive() && !draining_);
  }
  std::unique_ptr<Completion> completion = std::move(std::get<std::unique_ptr<Completion>>(answer));
  if (completion->streams()) co_return co_await stream(std::move(completion));
  co_return co_await complete(std::move(completion));
}

asio::awaitable<bool> Connection::complete(std::unique_ptr<Completion> completion) {
  while (true) {
    start_read();
    if (closed_) co_return false;  // the completion dies with this frame
    Completion::Piece piece = completion->take();
    if (piece.finished) {
      const HttpResponse response{.status = piece.status, .body = std::move(piece.bytes)};
      co_return co_await respond(response, parser_->get().keep_alive() && !draining_);
    }
    co_await sleep_until(Clock::time_point::max());
  }
}

asio::awaitable<bool> Connection::stream(std::unique_ptr<Completion> completion) {
  const bool chunked = parser_->get().version() >= 11;
  const bool keep_alive = chunked && parser_->get().keep_alive() && !draining_;
  Headers headers{{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  if (chunked) headers.emplace_back("Transfer-Encoding", "chunked");
  std::string out = head(200, "text/event-stream; charset=utf-8", headers, keep_alive) + "\r\n";
  Histogram& latency = shared_->services.metrics->histogram("event_latency_seconds", "From the engine's output to the socket.", kEventSeconds);
  while (true) {
    Completion::Piece piece = completion->take();
    if (!piece.bytes.empty()) out += chunked ? chunk(piece.bytes) : piece.bytes;
    if (piece.finished && chunked) out += "0\r\n\r\n";
    const bool news = !out.empty();
    if (news) {
      std::string data = std::exchange(out, {});
      const bool written = co_await write(std::move(data));
      if (!written) co_return false;
      const Clock::time_point now = Clock::now();
      for (const Clock::time_point made : piece.made) latency.observe(std::chrono::duration<double>(now - made).count());
    }
    if (piece.finished) break;
    start_read();
    if (closed_) co_return false;
    if (news) continue;  // more may have come while it was written
    const bool woken = co_await sleep_until(Clock::now() + shared_->options.http.comment_interval);
    if (!woken) out = chunked ? chunk(": still here\n\n") : ": still here\n\n";
  }
  note(200);
  co_return keep_alive;
}

asio::awaitable<void> Connection::upgrade() {
  if (shared_->hub == nullptr) {
    HttpResponse response = ApiError{.status = 501, .message = "this server has no agent sessions"}.response();
    co_await refuse(std::move(response));
    co_return;
  }
  note(101);
  web_socket_.emplace(std::move(stream_));  // nothing is pending on it: the head was read whole
  co_await run_acp_connection(*web_socket_, parser_->get(), request_->who, *shared_->hub, shared_->workers);
}

}  // namespace fixpoint::server::detail
