#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "server/acp_bridge.h"
#include "tests/server/service.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

std::string endless(bool stream) { return R"({"prompt":"a",)" + std::string(kEndless) + (stream ? R"(,"stream":true})" : "}"); }

TEST(DisconnectTest, AClientThatLeavesAStreamStopsItsWork) {
  Service service;
  service.start();
  {
    HttpClient client(service.address());
    client.send(HttpClient::message("POST", "/v1/completions", endless(true)));
    EXPECT_NE(client.read_until("data: "), "");
    EXPECT_TRUE(service.becomes_busy());
  }
  EXPECT_TRUE(service.becomes_idle());
  EXPECT_NE(service.get("/metrics").body.find("request_success_total{finished_reason=\"abort\"} 1"), std::string::npos);
  EXPECT_EQ(service.admission.sessions(), 0);
}

TEST(DisconnectTest, AClientThatWaitsForAWholeAnswerStopsItToo) {
  Service service;
  service.start();
  {
    HttpClient client(service.address());
    client.send(HttpClient::message("POST", "/v1/completions", endless(false)));
    EXPECT_TRUE(service.becomes_busy());
  }
  EXPECT_TRUE(service.becomes_idle());
}

TEST(DisconnectTest, OthersGoOnWhenOneLeaves) {
  Service service;
  service.start();
  HttpClient stays(service.address());
  stays.send(HttpClient::message("POST", "/v1/completions", endless(true)));
  EXPECT_NE(stays.read_until("data: "), "");
  {
    HttpClient leaves(service.address());
    leaves.send(HttpClient::message("POST", "/v1/completions", endless(true)));
    EXPECT_NE(leaves.read_until("data: "), "");
    EXPECT_TRUE(service.becomes_busy(2));
  }
  EXPECT_TRUE(eventually([&] { return service.engine().stats().running == 1; }));
  EXPECT_NE(stays.read_until("data: "), "");
}

TEST(DrainTest, WhatIsUnderWayFinishesAndNothingNewBegins) {
  Service service;
  service.start();
  HttpClient idle(service.address()), busy(service.address());
  EXPECT_EQ(idle.request("GET", "/ready").status, 200);
  busy.send(HttpClient::message("POST", "/v1/completions", R"({"prompt":"a","temperature":0,"ignore_eos":true,"max_tokens":300,"stream":true})"));
  EXPECT_NE(busy.read_until("\r\n\r\n"), "");
  service.server().drain();
  const std::string rest = busy.read_until("data: [DONE]\n\n");
  EXPECT_NE(rest, "");
  EXPECT_TRUE(busy.closed());
  EXPECT_TRUE(idle.closed());
  service.server().wait();
  EXPECT_FALSE(HttpClient(service.address()).connected());
  EXPECT_TRUE(service.services.draining);
}

TEST(DrainTest, TheDeadlineEndsWhatHasNotFinished) {
  Service service;
  service.start({.drain_deadline = std::chrono::milliseconds(20)});
  HttpClient client(service.address());
  client.send(HttpClient::message("POST", "/v1/completions", endless(true)));
  EXPECT_NE(client.read_until("data: "), "");
  service.server().drain();
  EXPECT_TRUE(client.closed());
  service.server().wait();
  EXPECT_TRUE(service.becomes_idle());
}

TEST(ListenTest, SeveralAddressesServeTheSameAndSocketFilesGo) {
  Service service;
  const std::string path = (service.folder.path() / "s.sock").string();
  service.start({.listen = {"127.0.0.1:0", "unix:" + path}});
  EXPECT_EQ(service.address(1), "unix:" + path);
  EXPECT_EQ(HttpClient(service.address(0)).request("GET", "/health").status, 200);
  EXPECT_EQ(HttpClient(service.address(1)).request("GET", "/health").status, 200);
  // A second server does not take the socket of one that lives.
  EXPECT_FALSE(Server::start({.listen = {"unix:" + path}}, service.services).has_value());
  service.stop();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListenTest, ASocketFileThatNobodyListensOnIsReplaced) {
  Service service;
  const std::string path = (service.folder.path() / "s.sock").string();
  std::ofstream(service.folder.path() / "plain") << "no socket";
  EXPECT_FALSE(Server::start({.listen = {"unix:" + (service.folder.path() / "plain").string()}}, service.services).has_value());
  service.start({.listen = {"unix:" + path}});
  const auto other = service.folder.path() / "other.sock";
  std::filesystem::rename(path, other);  // as a killed server leaves it
  service.stop();
  auto again = Server::start({.listen = {"unix:" + other.string()}}, service.services);
  ASSERT_TRUE(again.has_value()) << again.error();
  EXPECT_EQ(HttpClient("unix:" + other.string()).request("GET", "/health").status, 200);
}

TEST(ListenTest, WhatOtherMachinesReachNeedsTokens) {
  Service service;
  const auto started = Server::start({.listen = {"0.0.0.0:0"}}, service.services);
  ASSERT_FALSE(started.has_value());
  EXPECT_NE(started.error().find("--tokens"), std::string::npos);
  for (const std::string& address : {std::string("nonsense"), std::string("127.0.0.1:port"), std::string("127.0.0.1:"), std::string("127.0.0.1:65536"),
                                     std::string("127.0.0.1:-1"), std::string("unix:"), "unix:/" + std::string(200, 'x')}) {
    EXPECT_FALSE(Server::start({.listen = {address}}, service.services).has_value()) << address;
  }
}

TEST(TlsTest, CertificatesAreUsedAndReadAgain) {
  Service service;
  const auto certificate = service.folder.path() / "cert.pem", key = service.folder.path() / "key.pem";
  write_certificate(certificate, key, "first");
  service.start({.tls_certificate = certificate.string(), .tls_key = key.string()});
  EXPECT_TRUE(service.address().starts_with("https://"));
  HttpClient before(service.address());
  EXPECT_EQ(before.peer_name(), "first");
  EXPECT_EQ(before.request("GET", "/health").status, 200);
  write_certificate(certificate, key, "second");
  ASSERT_TRUE(service.server().reload().has_value());
  EXPECT_EQ(HttpClient(service.address()).peer_name(), "second");
  EXPECT_EQ(before.request("GET", "/health").status, 200);  // what is open stays
  std::ofstream(certificate) << "nonsense";
  EXPECT_FALSE(service.server().reload().has_value());
  EXPECT_EQ(HttpClient(service.address()).peer_name(), "second");
}

TEST(TlsTest, StreamsAndDisconnectsWorkAsWithoutIt) {
  Service service;
  const auto certificate = service.folder.path() / "cert.pem", key = service.folder.path() / "key.pem";
  write_certificate(certificate, key, "localhost");
  service.start({.tls_certificate = certificate.string(), .tls_key = key.string()});
  const Reply reply = service.post("/v1/completions", R"({"prompt":"a","stream":true,"max_tokens":5,"ignore_eos":true})");
  EXPECT_EQ(events_of(reply.body).back(), "[DONE]");
  {
    HttpClient client(service.address());
    client.send(HttpClient::message("POST", "/v1/completions", endless(true)));
    EXPECT_NE(client.read_until("data: "), "");
  }
  EXPECT_TRUE(service.becomes_idle());
  HttpClient plain("http://" + service.address().substr(8));
  plain.send(HttpClient::message("GET", "/health"));
  EXPECT_EQ(plain.read().status, 0);  // no answer to who does not speak TLS
}

TEST(TlsTest, TheBridgeOfEditorsSpeaksToTheNamedServerAlone) {
  Service service;
  const auto certificate = service.folder.path() / "cert.pem", key = service.folder.path() / "key.pem";
  write_certificate(certificate, key, "localhost");
  service.start({.tls_certificate = certificate.string(), .tls_key = key.string()});
  const std::string port = service.address().substr(service.address().rfind(':'));
  const auto bridge = [&](const std::string& host, const std::string& ca_file) {
    int input[2];
    EXPECT_EQ(::pipe2(input, O_CLOEXEC), 0);
    std::string error = run_acp_bridge({.url = "wss://" + host + port + "/acp", .ca_file = ca_file}, input[0], input[1]);
    ::close(input[0]);
    ::close(input[1]);
    return error;
  };
  // This server has no editors, which it says over TLS.
  EXPECT_THAT(bridge("localhost", certificate.string()), testing::HasSubstr("(HTTP 501)"));
  EXPECT_THAT(bridge("localhost", ""), testing::HasSubstr("verify failed"));
  EXPECT_THAT(bridge("127.0.0.1", certificate.string()), testing::HasSubstr("verify failed"));
  EXPECT_THAT(bridge("localhost", key.string() + ".not"), testing::HasSubstr(key.string() + ".not"));
}

TEST(LoadTest, ManyClientsAtOnceAllGetTheirAnswers) {
  Service service;
  service.start();
  std::vector<std::jthread> clients;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&service, &good, i] {
      HttpClient client(service.address());
      for (int k = 0; k < 4; ++k) {
        const bool stream = (i + k) % 2 == 0;
        const Reply reply = client.request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":6,"ignore_eos":true,"stream":)" + std::string(stream ? "true}" : "false}"));
        if (reply.status == 200 && (!stream || events_of(reply.body).back() == "[DONE]")) ++good;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(good, 32);
  EXPECT_TRUE(service.becomes_idle());
}

}  // namespace
}  // namespace fixpoint::server
