#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "server/tenancy.h"
#include "tests/agent/loop_fixture.h"
#include "tests/server/service.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

/// Sessions in the journal, made by real loops whose model never finds the answer.
struct JournalApiTest : ::testing::Test {
  Service service;
  agent::NumberChecker checker;
  std::mutex mutex;
  std::vector<std::string> resumed;

  JournalApiTest() {
    service.services.resume_session = [this](const std::string& tenant, const std::string& session) {
      const std::scoped_lock lock(mutex);
      resumed.push_back(tenant + " " + session);
    };
  }
  std::string hand_over(const std::string& tenant) {
    agent::FunctionGenerator model([](const agent::GenerateRequest&, const std::stop_token&) -> tl::expected<agent::Generation, agent::GenerateError> {
      return agent::answer(agent::fenced(agent::program(1)));
    });
    agent::Loop loop({.model = &model, .checker = &checker, .journal = service.journal.get()});
    agent::LoopOptions options;
    options.ladder = {{.kind = agent::RungKind::person, .attempts = 1}};
    const auto result = loop.run(agent::make_task(), options, {}, {}, new_session_id(tenant));
    EXPECT_TRUE(result.has_value());
    EXPECT_EQ(result->end.outcome, agent::Outcome::handed_over);
    return result->session;
  }
  json get(const std::string& path, const HttpClient::HeaderList& headers = {}, int status = 200) const {
    const Reply reply = service.get(path, headers);
    EXPECT_EQ(reply.status, status) << path << " " << reply.body;
    return json::parse(reply.body);
  }
  json post(const std::string& path, const std::string& body, int status = 200) const {
    const Reply reply = service.post(path, body);
    EXPECT_EQ(reply.status, status) << path << " " << reply.body;
    return json::parse(reply.body);
  }
};

TEST_F(JournalApiTest, SessionsAreListedShownAndTold) {
  const std::string id = hand_over("local");
  service.start();
  const json list = get("/v1/sessions");
  ASSERT_EQ(list["data"].size(), 1U);
  EXPECT_EQ(list["data"][0]["id"], id);
  EXPECT_EQ(list["data"][0]["state"], "handed_over");
  EXPECT_TRUE(list["next_cursor"].is_null());
  EXPECT_EQ(get("/v1/sessions/" + id), list["data"][0]);
  EXPECT_EQ(get("/v1/sessions/none", {}, 404)["error"]["code"], "unknown");

  std::vector<std::int64_t> seen;
  std::int64_t after = 0;
  for (json page; page.empty() || !page["next_after"].is_null();) {
    page = get("/v1/sessions/" + id + "/events?limit=3&after=" + std::to_string(after));
    for (const json& event : page["data"]) seen.push_back(event["seq"]);
    if (!page["next_after"].is_null()) after = page["next_after"];
  }
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), list["data"][0]["last_seq"]);
}

TEST_F(JournalApiTest, PagesHoldEverySessionOnce) {
  std::set<std::string> made;
  for (int i = 0; i < 5; ++i) made.insert(hand_over("local"));
  service.start();
  std::multiset<std::string> seen;
  std::string cursor;
  for (int page = 0; page < 10; ++page) {
    const json list = get("/v1/sessions?limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
    EXPECT_LE(list["data"].size(), 2U);
    for (const json& row : list["data"]) seen.insert(row["id"]);
    if (list["next_cursor"].is_null()) break;
    cursor = list["next_cursor"];
  }
  EXPECT_EQ(seen, std::multiset<std::string>(made.begin(), made.end()));
  EXPECT_EQ(get("/v1/sessions?limit=0", {}, 400)["error"]["param"], "limit");
  EXPECT_EQ(get("/v1/escalations?state=lost", {}, 400)["error"]["param"], "state");
}

TEST_F(JournalApiTest, AnEscalationIsClaimedOnceAndAHintGoesBackToTheLoop) {
  const std::string session = hand_over("local");
  service.start();
  const json list = get("/v1/escalations?state=open");
  ASSERT_EQ(list["data"].size(), 1U);
  const std::string id = list["data"][0]["id"];
  const json whole = get("/v1/escalations/" + id);
  EXPECT_EQ(whole["session"], session);
  EXPECT_TRUE(whole["handover"].is_object());
  EXPECT_NE(whole["handover_markdown"].get<std::string>().find("Give back seven"), std::string::npos);
  EXPECT_EQ(post("/v1/escalations/" + id + "/claim", "")["state"], "claimed");
  EXPECT_EQ(post("/v1/escalations/" + id + "/claim", "", 409)["error"]["code"], "conflict");
  EXPECT_EQ(post("/v1/escalations/" + id + "/hint", "{}", 400)["error"]["param"], "text");
  EXPECT_EQ(post("/v1/escalations/" + id + "/hint", R"({"text":"seven","grant":{"rounds":99}})", 400)["error"]["param"], "grant");
  post("/v1/escalations/" + id + "/hint", R"({"text":"it is seven","grant":{"rounds":2,"tokens":500,"seconds":30}})");
  EXPECT_EQ(resumed, std::vector<std::string>{"local " + session});
  const auto events = service.journal->events(session);
  const auto* hint = std::get_if<agent::HintGiven>(&events->back().event);
  ASSERT_NE(hint, nullptr);
  EXPECT_EQ(hint->text, "it is seven");
  EXPECT_EQ(hint->grant.rounds, 2);
  EXPECT_EQ(hint->grant.wall, std::chrono::seconds(30));
}

TEST_F(JournalApiTest, ProgramsAndRefusalsAreNoted) {
  hand_over("local");
  hand_over("local");
  service.start();
  const json list = get("/v1/escalations");
  ASSERT_EQ(list["data"].size(), 2U);
  const std::string a = list["data"][0]["id"], b = list["data"][1]["id"];
  post("/v1/escalations/" + a + "/submit", json{{"program", agent::program(7)}}.dump());
  EXPECT_EQ(post("/v1/escalations/" + b + "/decline", "{}", 400)["error"]["param"], "reason");
  post("/v1/escalations/" + b + "/decline", R"({"reason":"no"})");
  EXPECT_EQ(resumed.size(), 2U);
  EXPECT_EQ(post("/v1/escalations/none/claim", "", 404)["error"]["code"], "unknown");
  EXPECT_NE(service.get("/metrics").body.find("fixpoint_escalation_decisions_total{action=\"submit\"} 1"), std::string::npos);
}

TEST_F(JournalApiTest, WhatIsAnotherTenantsDoesNotExist) {
  const std::string mine = hand_over("acme"), theirs = hand_over("beta");
  const std::string user = service.add_token("a", "acme", true, true, false), chief = service.add_token("o", "ops", false, false, true);
  service.start({.token_file = service.token_file()});
  const auto as_user = Service::with(user);
  const json list = get("/v1/sessions", as_user);
  ASSERT_EQ(list["data"].size(), 1U);
  EXPECT_EQ(list["data"][0]["id"], mine);
  EXPECT_EQ(get("/v1/escalations", as_user)["data"].size(), 1U);
  get("/v1/sessions/" + theirs, as_user, 404);
  get("/v1/sessions/" + theirs + "/events", as_user, 404);
  EXPECT_EQ(get("/v1/sessions", Service::with(chief))["data"].size(), 2U);
  const json all = get("/v1/escalations", Service::with(chief));
  for (const json& row : all["data"]) {
    const std::string id = row["id"];
    const bool own = row["session"] == mine;
    get("/v1/escalations/" + id, as_user, own ? 200 : 404);
    EXPECT_EQ(service.post("/v1/escalations/" + id + "/claim", "", as_user).status, own ? 200 : 404);
  }
}

}  // namespace
}  // namespace fixpoint::server
