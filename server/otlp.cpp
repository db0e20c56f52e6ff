#include "server/otlp.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fixpoint::server {
namespace {

using nlohmann::json;

std::string nanoseconds(std::chrono::system_clock::time_point time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

json attributes_json(const std::vector<std::pair<std::string, std::string>>& attributes) {
  json out = json::array();
  for (const auto& [key, value] : attributes) out.push_back({{"key", key}, {"value", {{"stringValue", value}}}});
  return out;
}

json span_json(const Span& span) {
  constexpr int kServer = 2, kInternal = 1, kError = 2;
  json out{{"traceId", span.context.trace_id},  {"spanId", span.context.span_id},  {"name", span.name},
           {"kind", span.name.find(" /") == std::string::npos ? kInternal : kServer},
           {"startTimeUnixNano", nanoseconds(span.begin)}, {"endTimeUnixNano", nanoseconds(span.end)}, {"attributes", attributes_json(span.attributes)}};
  if (!span.parent_span_id.empty()) out["parentSpanId"] = span.parent_span_id;
  if (span.failed) out["status"] = {{"code", kError}};
  return out;
}

class Socket {
 public:
  Socket(const std::string& host, const std::string& port, std::chrono::milliseconds timeout) {
    addrinfo hints{.ai_socktype = SOCK_STREAM};
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return;
    for (const addrinfo* it = found; it != nullptr && fd_ < 0; it = it->ai_next) {
      fd_ = ::socket(it->ai_family, it->ai_socktype | SOCK_CLOEXEC, it->ai_protocol);
      const timeval limit{.tv_sec = timeout.count() / 1000, .tv_usec = (timeout.count() % 1000) * 1000};
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
      ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));  // connect() obeys it too
      if (::connect(fd_, it->ai_addr, it->ai_addrlen) == 0) continue;
      ::close(fd_);
      fd_ = -1;
    }
    ::freeaddrinfo(found);
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] bool send(std::string_view bytes) const {
    while (fd_ >= 0 && !bytes.empty()) {
      const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return fd_ >= 0;
  }
  /// The status of the answer; 0 where there is none.
  [[nodiscard]] int status() const {
    std::string head;
    char buffer[512];
    while (head.size() < 12) {
      const ssize_t size = ::recv(fd_, buffer, sizeof(buffer), 0);
      if (size <= 0) return 0;
      head.append(buffer, static_cast<std::size_t>(size));
    }
    return head.starts_with("HTTP/1.") ? std::atoi(head.c_str() + 9) : 0;
  }

 private:
  int fd_ = -1;
};

}  // namespace

std::string otlp_json(std::span<const Span> spans, const std::string& service_name) {
  json list = json::array();
  for (const Span& span : spans) list.push_back(span_json(span));
  const json body{{"resourceSpans",
                   {{{"resource", {{"attributes", attributes_json({{"service.name", service_name}})}}},
                     {"scopeSpans", {{{"scope", {{"name", "fixpoint"}}}, {"spans", std::move(list)}}}}}}}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

OtlpTracer::OtlpTracer(OtlpOptions options, Address address, Metrics& metrics)
    : options_(std::move(options)), address_(std::move(address)),
      sent_(metrics.counter("trace_spans_total", "Spans by what became of them.", {{"result", "sent"}})),
      dropped_(metrics.counter("trace_spans_total", "Spans by what became of them.", {{"result", "dropped"}})),
      failed_(metrics.counter("trace_spans_total", "Spans by what became of them.", {{"result", "failed"}})),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

tl::expected<std::unique_ptr<OtlpTracer>, std::string> OtlpTracer::start(OtlpOptions options, Metrics& metrics) {
  constexpr std::string_view kScheme = "http://";
  if (!options.endpoint.starts_with(kScheme)) return tl::unexpected("--otlp-endpoint: '" + options.endpoint + "' does not begin with http://");
  std::string rest = options.endpoint.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  Address address{.target = slash == std::string::npos || slash + 1 == rest.size() ? "/v1/traces" : rest.substr(slash)};
  rest = rest.substr(0, slash);
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && rest.find(']', colon) == std::string::npos;
  address.host = has_port ? rest.substr(0, colon) : rest;
  address.port = has_port ? rest.substr(colon + 1) : "4318";
  if (address.host.size() > 2 && address.host.front() == '[') address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty() || address.port.empty()) return tl::unexpected("--otlp-endpoint: '" + options.endpoint + "' names no host");
  return std::unique_ptr<OtlpTracer>(new OtlpTracer(std::move(options), std::move(address), metrics));
}

OtlpTracer::~OtlpTracer() {
  thread_.request_stop();
  changed_.notify_all();
}

void OtlpTracer::finish(Span span) {
  const std::scoped_lock lock(mutex_);
  if (waiting_.size() >= options_.max_waiting) return dropped_.add();
  waiting_.push_back(std::move(span));
  if (waiting_.size() >= options_.max_batch) changed_.notify_all();
}

void OtlpTracer::run(const std::stop_token& stop) {
  while (true) {
    std::vector<Span> batch;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, options_.interval, [this] { return waiting_.size() >= options_.max_batch; });
      const std::size_t size = std::min(waiting_.size(), options_.max_batch);
      batch.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.begin() + static_cast<std::ptrdiff_t>(size)));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(size));
    }
    if (!batch.empty()) send(batch);
    if (stop.stop_requested()) return;
  }
}

void OtlpTracer::send(const std::vector<Span>& spans) {
  const std::string body = otlp_json(spans, options_.service_name);
  const Socket socket(address_.host, address_.port, options_.timeout);
  const std::string head = "POST " + address_.target + " HTTP/1.1\r\nHost: " + address_.host + ":" + address_.port +
                           "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  const bool sent = socket.send(head) && socket.send(body) && socket.status() / 100 == 2;
  (sent ? sent_ : failed_).add(spans.size());
}

}  // namespace fixpoint::server
