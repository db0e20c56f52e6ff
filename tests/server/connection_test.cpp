#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/service.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

/// What goes over a socket that is no well-formed, prompt, single request.
struct ConnectionTest : ::testing::Test {
  Service service;

  void start(HttpLimits limits = {}) { service.start({.http = limits}); }
  int status_of(const std::string& bytes) const {
    HttpClient client(service.address());
    client.send(bytes);
    const Reply reply = client.read();
    if (reply.status >= 400) {
      EXPECT_TRUE(json::parse(reply.body).contains("error")) << reply.body;
    }
    return reply.status;
  }
};

TEST_F(ConnectionTest, WhatIsNoHttpIsRefused) {
  start();
  EXPECT_EQ(status_of("hello\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/9.9\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /health HTTP/1.1\r\nbad header\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST /tokenize HTTP/1.1\r\nContent-Length: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST /tokenize HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 400);
  EXPECT_EQ(status_of("GET health HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n"), 400);  // TLS to a plain port
  EXPECT_EQ(service.get("/health").status, 200);
}

TEST_F(ConnectionTest, HeadsAndBodiesAreBounded) {
  start({.header_bytes = 1024, .body_bytes = 2048});
  EXPECT_EQ(status_of("GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(2000, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(status_of("GET /health HTTP/1.1\r\nX: " + std::string(100'000, 'x')), 431);  // never ends
  EXPECT_EQ(status_of("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"), 413);
  EXPECT_EQ(status_of("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + std::string(4095, ' ')), 413);
  EXPECT_EQ(service.post("/tokenize", R"({"prompt":"x"})").status, 200);
}

TEST_F(ConnectionTest, WhoIsTooSlowIsToldSo) {
  start({.head_timeout = std::chrono::milliseconds(50), .body_timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(status_of("GET /health HT"), 408);
  EXPECT_EQ(status_of("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"), 408);
  HttpClient silent(service.address());
  EXPECT_TRUE(silent.closed());
}

TEST_F(ConnectionTest, AConnectionThatRestsIsClosed) {
  start({.idle_timeout = std::chrono::milliseconds(20)});
  HttpClient rests(service.address());
  EXPECT_EQ(rests.request("GET", "/health").status, 200);
  EXPECT_TRUE(rests.closed());
}

TEST_F(ConnectionTest, UnknownPathsAndMethodsSayWhatThereIs) {
  start();
  EXPECT_EQ(service.get("/nothing").status, 404);
  const Reply reply = service.get("/v1/chat/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.header("allow"), "POST");
  EXPECT_EQ(HttpClient(service.address()).request("BREW", "/health").status, 405);
  EXPECT_EQ(service.get("/acp").status, 426);
}

TEST_F(ConnectionTest, OneConnectionServesManyRequestsAlsoSentAhead) {
  start();
  HttpClient client(service.address());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.request("GET", "/health").status, 200);
  client.send(HttpClient::message("GET", "/health") + HttpClient::message("POST", "/tokenize", R"({"prompt":"ab"})") + HttpClient::message("GET", "/v1/models"));
  EXPECT_EQ(json::parse(client.read().body)["status"], "ok");
  EXPECT_TRUE(json::parse(client.read().body).contains("tokens"));
  EXPECT_TRUE(json::parse(client.read().body).contains("data"));
  client.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read().header("connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST_F(ConnectionTest, ARequestMayComeInPieces) {
  start();
  HttpClient client(service.address());
  for (const char c : HttpClient::message("POST", "/tokenize", R"({"prompt":"ab"})")) client.send(std::string(1, c));
  EXPECT_EQ(client.read().status, 200);
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pro\r\n9\r\nmpt\":\"a\"}\r\n0\r\n\r\n");
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ConnectionTest, AnExpectedContinueIsGiven) {
  start();
  HttpClient client(service.address());
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(R"({"prompt":"x"})");
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ConnectionTest, HeadHasNoBodyAndOldClientsGetAStreamThatEndsWithTheConnection) {
  start();
  HttpClient client(service.address());
  const Reply head = client.request("HEAD", "/health");
  EXPECT_EQ(head.header("content-length"), "15");
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(client.request("GET", "/health").status, 200);
  HttpClient old(service.address());
  const std::string body = R"({"prompt":"a","stream":true,"max_tokens":3,"ignore_eos":true})";
  old.send("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const Reply reply = old.read();
  EXPECT_EQ(reply.header("transfer-encoding"), "");
  EXPECT_EQ(events_of(reply.body).back(), "[DONE]");
}

TEST_F(ConnectionTest, WhoHangsUpInTheMiddleHarmsNobody) {
  start();
  const std::string whole = HttpClient::message("POST", "/v1/completions", R"({"prompt":"a","max_tokens":4})");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    HttpClient client(service.address());
    client.send(whole.substr(0, size));
  }
  EXPECT_EQ(service.get("/health").status, 200);
  EXPECT_TRUE(eventually([&] { return service.admission.connections() == 0; }));
  EXPECT_TRUE(service.becomes_idle());
}

TEST_F(ConnectionTest, TooManyConnectionsOfAnAddressAreTurnedAway) {
  Admission small({.max_connections = 4, .max_connections_per_address = 2});
  service.services.admission = &small;
  start();
  HttpClient a(service.address()), b(service.address());
  EXPECT_EQ(a.request("GET", "/health").status, 200);
  EXPECT_EQ(b.request("GET", "/health").status, 200);
  HttpClient c(service.address());
  const Reply reply = c.read();
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(json::parse(reply.body)["error"]["code"], "connections");
  EXPECT_EQ(a.request("GET", "/health").status, 200);
  service.stop();
}

}  // namespace
}  // namespace fixpoint::server
