#include "server/otlp.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace fixpoint::server {
namespace {

using nlohmann::json;

Span span_of(const std::string& name) {
  const auto begin = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'123));
  return {.context = {.trace_id = std::string(32, 'a'), .span_id = std::string(16, 'b')}, .parent_span_id = std::string(16, 'c'), .name = name,
          .begin = begin, .end = begin + std::chrono::milliseconds(5), .attributes = {{"k", "v"}}, .failed = true};
}

/// Takes one export and answers with a status.
class Collector {
 public:
  explicit Collector(int status) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
    socklen_t size = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, status] { serve(status); });
  }
  ~Collector() {
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string wait() {
    thread_.join();
    return request_;
  }

 private:
  void serve(int status) {
    const int client = ::accept(listener_, nullptr, nullptr);
    char buffer[4096];
    std::size_t length = 0;
    for (ssize_t size = 0; (size = ::recv(client, buffer, sizeof(buffer), 0)) > 0;) {
      request_.append(buffer, static_cast<std::size_t>(size));
      const std::size_t head = request_.find("\r\n\r\n"), field = request_.find("Content-Length: ");
      if (head == std::string::npos) continue;
      length = head + 4 + std::stoul(request_.substr(field + 16));
      if (request_.size() >= length) break;
    }
    const std::string answer = "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 0\r\n\r\n";
    (void)!::write(client, answer.data(), answer.size());
    ::close(client);
  }
  int listener_;
  int port_ = 0;
  std::string request_;
  std::jthread thread_;
};

TEST(OtlpTest, TheBodyIsWhatCollectorsRead) {
  const std::vector<Span> spans{span_of("GET /x"), span_of("turn")};
  const json body = json::parse(otlp_json(spans, "svc"));
  EXPECT_EQ(body["resourceSpans"][0]["resource"]["attributes"][0], (json{{"key", "service.name"}, {"value", {{"stringValue", "svc"}}}}));
  const json& span = body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(span["traceId"], std::string(32, 'a'));
  EXPECT_EQ(span["parentSpanId"], std::string(16, 'c'));
  EXPECT_EQ(span["startTimeUnixNano"], "1700000000123000000");
  EXPECT_EQ(span["endTimeUnixNano"], "1700000000128000000");
  EXPECT_EQ(span["kind"], 2);
  EXPECT_EQ(span["status"]["code"], 2);
  EXPECT_EQ(body["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["kind"], 1);
}

TEST(OtlpTest, SpansArriveAtTheCollectorAndAreCounted) {
  Collector collector(200);
  Metrics metrics;
  {
    auto tracer = OtlpTracer::start({.endpoint = collector.endpoint()}, metrics);
    ASSERT_TRUE(tracer.has_value());
    (*tracer)->finish(span_of("turn"));
  }
  const std::string request = collector.wait();
  EXPECT_TRUE(request.starts_with("POST /v1/traces HTTP/1.1\r\n"));
  EXPECT_EQ(json::parse(request.substr(request.find("\r\n\r\n") + 4))["resourceSpans"][0]["scopeSpans"][0]["spans"].size(), 1U);
  EXPECT_EQ(metrics.counter("trace_spans_total", "", {{"result", "sent"}}).value(), 1U);
}

TEST(OtlpTest, WhatIsNotTakenIsCountedAndNobodyWaits) {
  Collector collector(500);
  Metrics metrics;
  {
    auto tracer = OtlpTracer::start({.endpoint = collector.endpoint() + "/", .max_waiting = 1, .interval = std::chrono::hours(1)}, metrics);
    ASSERT_TRUE(tracer.has_value());
    (*tracer)->finish(span_of("a"));
    (*tracer)->finish(span_of("b"));
  }
  (void)collector.wait();
  EXPECT_EQ(metrics.counter("trace_spans_total", "", {{"result", "dropped"}}).value(), 1U);
  EXPECT_EQ(metrics.counter("trace_spans_total", "", {{"result", "failed"}}).value(), 1U);
}

TEST(OtlpTest, AddressesThatItCannotSpeakToAreRefused) {
  Metrics metrics;
  for (const char* endpoint : {"", "https://x", "x:1", "http://", "http://:1"}) EXPECT_FALSE(OtlpTracer::start({.endpoint = endpoint}, metrics).has_value()) << endpoint;
}

}  // namespace
}  // namespace fixpoint::server
