#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/service.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

constexpr const char* kShort = R"({"prompt":"return the return the return the return the","max_tokens":2,"ignore_eos":true,"temperature":0})";

struct AuthTest : ::testing::Test {
  Service service;
  void start(ServerOptions options = {}) {
    options.token_file = service.token_file();
    service.start(std::move(options));
  }
};

TEST_F(AuthTest, WithoutAKnownTokenOnlyHealthIsOpen) {
  service.add_token("a", "acme", true, false, false);
  start();
  EXPECT_EQ(service.get("/health").status, 200);
  EXPECT_EQ(service.get("/ready").status, 200);
  for (const char* path : {"/v1/models", "/metrics", "/v1/sessions", "/v1/escalations", "/acp"}) {
    const Reply reply = service.get(path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.header("www-authenticate"), "Bearer") << path;
    EXPECT_EQ(json::parse(reply.body)["error"]["type"], "authentication_error");
    EXPECT_EQ(service.get(path, Service::with("fxp_wrong")).status, 401);
  }
  // Before the body is read: nobody uploads without a token.
  HttpClient client(service.address());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(client.read().status, 401);
}

TEST_F(AuthTest, RolesDecide) {
  const std::string user = service.add_token("u", "acme", true, false, false), reviewer = service.add_token("r", "acme", false, true, false),
                    chief = service.add_token("o", "ops", false, false, true);
  start();
  EXPECT_EQ(service.get("/v1/models", Service::with(user)).status, 200);
  EXPECT_EQ(service.get("/v1/escalations", Service::with(user)).status, 403);
  EXPECT_EQ(service.get("/metrics", Service::with(user)).status, 403);
  EXPECT_EQ(service.get("/v1/models", Service::with(reviewer)).status, 403);
  EXPECT_EQ(service.get("/v1/escalations", Service::with(reviewer)).status, 200);
  for (const char* path : {"/v1/models", "/v1/escalations", "/metrics"}) EXPECT_EQ(service.get(path, Service::with(chief)).status, 200) << path;
}

TEST_F(AuthTest, TenantsDoNotShareCachedPrefixes) {
  const std::string a = service.add_token("a", "acme", true, false, false), b = service.add_token("b", "beta", true, false, false);
  start();
  const auto cached = [&](const std::string& token) {
    return json::parse(service.post("/v1/completions", kShort, Service::with(token)).body)["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  EXPECT_EQ(cached(a), 0);
  EXPECT_EQ(cached(b), 0);
  EXPECT_GT(cached(a), 0);
  EXPECT_GT(cached(b), 0);
}

TEST_F(AuthTest, ATokensLimitsHold) {
  const std::string one = service.add_token("one", "acme", true, false, false, {.sessions = 1}),
                    few = service.add_token("few", "acme", true, false, false, {.tokens_per_minute = 2}),
                    narrow = service.add_token("narrow", "acme", true, false, false, {.connections = 1});
  start();
  HttpClient busy(service.address());
  busy.send(HttpClient::message("POST", "/v1/completions", R"({"prompt":"a","stream":true,)" + std::string(kEndless) + "}", Service::with(one)));
  EXPECT_NE(busy.read_until("data: "), "");
  const Reply second = service.post("/v1/completions", kShort, Service::with(one));
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(json::parse(second.body)["error"]["code"], "sessions");
  EXPECT_NE(second.header("retry-after"), "");
  EXPECT_EQ(service.post("/v1/completions", kShort, Service::with(few)).status, 200);
  EXPECT_EQ(json::parse(service.post("/v1/completions", kShort, Service::with(few)).body)["error"]["code"], "tokens_per_minute");
  HttpClient first(service.address());
  EXPECT_EQ(first.request("GET", "/v1/models", {}, Service::with(narrow)).status, 200);
  const Reply third = service.get("/v1/models", Service::with(narrow));
  EXPECT_EQ(third.status, 429);
  EXPECT_EQ(json::parse(third.body)["error"]["code"], "connections");
  EXPECT_EQ(first.request("GET", "/v1/models", {}, Service::with(narrow)).status, 200);
}

TEST_F(AuthTest, AReloadLetsNewTokensIn) {
  const std::string old = service.add_token("a", "acme", true, false, false);
  start();
  const std::string fresh = service.add_token("b", "acme", true, false, false);
  EXPECT_EQ(service.get("/v1/models", Service::with(fresh)).status, 401);
  ASSERT_TRUE(service.server().reload().has_value());
  EXPECT_EQ(service.get("/v1/models", Service::with(fresh)).status, 200);
  EXPECT_EQ(service.get("/v1/models", Service::with(old)).status, 200);
}

TEST_F(AuthTest, WebPagesMayCallOnlyWhereTheyAreListed) {
  service.start({.origins = {"https://app.example"}});
  EXPECT_EQ(service.get("/v1/models", {{"Origin", "https://evil.example"}}).status, 403);
  const Reply reply = service.get("/v1/models", {{"Origin", "https://app.example"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://app.example");
  HttpClient client(service.address());
  const Reply preflight = client.request("OPTIONS", "/v1/chat/completions", {}, {{"Origin", "https://app.example"}});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_NE(preflight.header("access-control-allow-headers").find("authorization"), std::string::npos);
}

TEST_F(AuthTest, WithoutTokensANameThatIsMadeToLeadHereIsRefused) {
  service.start();
  HttpClient client(service.address());
  client.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(client.read().status, 403);
  HttpClient numeric(service.address());
  numeric.send("GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
  EXPECT_EQ(numeric.read().status, 200);
}

TEST_F(AuthTest, SecretsAndPromptsStayOutOfTheLog) {
  const std::string secret = service.add_token("a", "acme", true, false, false);
  start();
  EXPECT_EQ(service.post("/v1/completions", R"({"prompt":"confidential words","max_tokens":2})", Service::with(secret)).status, 200);
  EXPECT_EQ(service.get("/v1/models?key=" + secret, Service::with("fxp_other_secret")).status, 401);
  const std::string log = service.log_text();
  EXPECT_NE(log.find(R"("token":"a")"), std::string::npos);
  EXPECT_EQ(log.find(secret), std::string::npos);
  EXPECT_EQ(log.find("fxp_other_secret"), std::string::npos);
  EXPECT_EQ(log.find("confidential"), std::string::npos);
}

TEST_F(AuthTest, AFaultyTokenFileStopsTheStart) {
  EXPECT_FALSE(Server::start({.listen = {"127.0.0.1:0"}, .token_file = service.token_file()}, service.services).has_value());
}

}  // namespace
}  // namespace fixpoint::server
