#include "agent/webhook.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/agent/http_server.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A session that is handed over at once.
std::string hand_over(Journal& journal) {
  FunctionGenerator model([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(1)));
  });
  NumberChecker checker;
  Loop loop({.model = &model, .checker = &checker, .journal = &journal});
  const auto result = loop.run(make_task(), {.task = {.rounds = 0, .tokens = 100, .wall = seconds(5), .sandbox = seconds(5)}, .ladder = {{.kind = RungKind::person}}}, {}, {});
  EXPECT_EQ(result->end.outcome, Outcome::handed_over);
  return result->end.escalation;
}

TEST(WebhookTest, TheSignatureIsHmacSha256OfTimestampAndBody) {
  // printf '1.{}' | openssl dgst -sha256 -hmac key
  EXPECT_EQ(webhook_signature("key", "1", "{}"), "sha256=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224");
}

TEST(WebhookTest, AHandOverIsPostedSignedAndOnce) {
  HttpServer server([](const SeenRequest&) { return whole_answer(204, "text/plain", ""); });
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  std::string id;
  {
    Webhook webhook(*journal, {.url = server.url("/hook"), .secret = "s3"});
    id = hand_over(*journal);
    webhook.drain(seconds(20));
    webhook.drain(seconds(20));
  }
  ASSERT_EQ(server.seen().size(), 1U);
  const SeenRequest seen = server.seen()[0];
  const auto body = nlohmann::json::parse(seen.body);
  EXPECT_EQ(body["id"], id);
  EXPECT_EQ(body["type"], "escalation_opened");
  EXPECT_EQ(seen.header("x-fixpoint-signature"), webhook_signature("s3", seen.header("x-fixpoint-timestamp"), seen.body));
}

TEST(WebhookTest, AFailureIsTriedAgainAndThenGivenUp) {
  HttpServer server([](const SeenRequest&) { return whole_answer(500, "text/plain", "no"); });
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  Webhook webhook(*journal, {.url = server.url("/hook"), .max_attempts = 3, .first_backoff = milliseconds(1)});
  (void)hand_over(*journal);
  for (int i = 0; i < 1'000 && server.seen().size() < 3; ++i) webhook.drain(milliseconds(100));
  webhook.drain(seconds(5));
  ASSERT_EQ(server.seen().size(), 3U);
  EXPECT_EQ(server.seen()[0].header("x-fixpoint-delivery"), server.seen()[2].header("x-fixpoint-delivery"));
  EXPECT_FALSE(journal->next_delivery(std::chrono::sys_time<milliseconds>(std::chrono::hours(24 * 365 * 200)))->has_value());
}

TEST(WebhookTest, WhatWasNotDeliveredWaitsForTheNextProcess) {
  const TestFolder folder;
  std::string id;
  {
    const auto journal = *Journal::open(folder.file("j.db"));
    journal->enable_deliveries(true);
    id = hand_over(*journal);
  }
  HttpServer server([](const SeenRequest&) { return whole_answer(200, "text/plain", ""); });
  const auto journal = *Journal::open(folder.file("j.db"));
  Webhook webhook(*journal, {.url = server.url("/hook")});
  webhook.drain(seconds(20));
  ASSERT_EQ(server.seen().size(), 1U);
  EXPECT_EQ(nlohmann::json::parse(server.seen()[0].body)["id"], id);
  EXPECT_EQ(server.seen()[0].header("x-fixpoint-signature"), "");
}

TEST(WebhookTest, ASilentReceiverHoldsUpNeitherTheLoopNorTheEnd) {
  HttpServer server([](const SeenRequest&) { return ServerAnswer{.hold = true}; });
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  Webhook webhook(*journal, {.url = server.url("/hook"), .timeout = seconds(100)});
  EXPECT_FALSE(hand_over(*journal).empty());
}

}  // namespace
}  // namespace fixpoint::agent
