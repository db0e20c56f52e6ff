#include <latch>

#include "tests/acp/acp_client.h"

namespace fixpoint::server {
namespace {

std::string wrong_then_right(const agent::GenerateRequest& request) {
  return agent::depth_of(request) == 0 ? agent::fenced(agent::program(6), "Six.") : agent::fenced(agent::program(7), "It must be seven.");
}

TEST(AcpPeerTest, AWholeSession) {
  Service service;
  service.answer = [](const agent::GenerateRequest& request, std::stop_token) { return agent::answer(wrong_then_right(request)); };
  Client client(service);
  const Json hello = client.initialize();
  EXPECT_EQ(hello["result"]["protocolVersion"], 1);
  EXPECT_TRUE(hello["result"]["agentCapabilities"]["loadSession"]);
  const std::string session = client.new_session();
  ASSERT_FALSE(session.empty());
  const Json end = client.call("session/prompt", Client::text_prompt(session, kTask));
  ASSERT_TRUE(end.contains("result")) << end;
  EXPECT_EQ(end["result"]["stopReason"], "end_turn");
  const Json& outcome = end["result"]["_meta"]["fixpoint"];
  EXPECT_EQ(outcome["outcome"], "solved");
  EXPECT_EQ(outcome["program"], agent::program(7));
  EXPECT_EQ(outcome["lastSeq"], client.last_seq()) << "the answer comes after every update";

  EXPECT_EQ(client.text_of("user_message_chunk"), "") << "whoever asked knows what was asked";
  EXPECT_NE(client.text_of("agent_thought_chunk").find("It must be seven."), std::string::npos);
  EXPECT_NE(client.text_of("agent_message_chunk").find(agent::program(7)), std::string::npos);
  const auto calls = client.updates("tool_call");
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0]["kind"], "execute");
  EXPECT_EQ(calls[0]["content"][0]["newText"], agent::program(6));
  EXPECT_EQ(calls[1]["content"][0]["oldText"], agent::program(6));
  EXPECT_EQ(calls[2]["kind"], "edit");
  const auto ends = client.updates("tool_call_update");
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0]["status"], "failed");
  EXPECT_EQ(ends[0]["rawOutput"]["status"], "wrong_answer");
  EXPECT_EQ(ends[1]["status"], "completed");
  EXPECT_EQ(ends[1]["rawOutput"]["passed"], 2);
  const auto plans = client.updates("plan");
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(plans.back()["entries"].size(), 4U) << plans.back();
  for (const Json& entry : plans.back()["entries"]) EXPECT_EQ(entry["status"], "completed");
  EXPECT_FALSE(client.updates("usage_update").empty());
}

TEST(AcpPeerTest, NumbersHaveNoGapsButForWhatTheClientSaidItself) {
  Service service;
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  client.call("session/prompt", Client::text_prompt(session, kTask));
  client.call("session/prompt", Client::text_prompt(session, kTask));
  std::int64_t last = 0;
  for (const Json& frame : client.frames) {
    if (frame.value("method", "") != "session/update") continue;
    const Json& ours = frame["params"]["_meta"]["fixpoint"];
    EXPECT_EQ(ours.value("from", ours["seq"].get<std::int64_t>()), last + 1);
    last = ours["seq"];
  }
}

TEST(AcpPeerTest, InitializeComesFirstAndOnce) {
  Service service;
  Client client(service);
  EXPECT_EQ(client.call("session/new", {{"cwd", "/"}, {"mcpServers", Json::array()}})["error"]["code"], -32600);
  client.initialize();
  EXPECT_EQ(client.initialize()["error"]["code"], -32600);
  EXPECT_EQ(client.call("initialise", {})["error"]["code"], -32601);
  EXPECT_EQ(client.call("_else/what", Json::object())["error"]["code"], -32601);
  EXPECT_EQ(client.call("authenticate", {{"methodId", "x"}})["error"]["code"], -32602);
  EXPECT_EQ(client.call("session/new", {{"cwd", 7}, {"mcpServers", Json::array()}})["error"]["code"], -32602);
  EXPECT_EQ(client.call("session/prompt", Client::text_prompt("none", kTask))["error"]["code"], -32002);
  EXPECT_EQ(client.call("session/load", {{"sessionId", "none"}, {"cwd", "/"}, {"mcpServers", Json::array()}})["error"]["code"], -32002);
  EXPECT_EQ(client.call("session/resume", {{"sessionId", "../../x"}, {"cwd", "/"}})["error"]["code"], -32002);
}

TEST(AcpPeerTest, BadMessagesAreAnsweredAndHarmless) {
  Service service;
  Client client(service);
  client.initialize();
  const std::size_t before = client.frames.size();
  for (const char* text : {"", "{", "[]", "[{}]", "\xff", "7", "{\"jsonrpc\":\"2.0\"}"}) client.peer->receive(text);
  client.peer->refuse_binary();
  client.peer->receive(R"({"jsonrpc":"2.0","id":"f9","result":{}})");               // never asked
  client.peer->receive(R"({"jsonrpc":"2.0","method":"session/cancel","params":7})");  // a notification is never answered
  client.peer->receive(R"({"jsonrpc":"2.0","method":"unheard/of"})");
  while (client.pump()) {}
  EXPECT_EQ(client.frames.size(), before + 8);
  for (std::size_t i = before; i < client.frames.size(); ++i) EXPECT_TRUE(client.frames[i].contains("error")) << client.frames[i];
  EXPECT_FALSE(client.new_session().empty());
}

TEST(AcpPeerTest, PromptsThatAreNoTaskAreRefused) {
  Service service;
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  const auto code = [&](const Json& params) { return client.call("session/prompt", params)["error"]["code"]; };
  EXPECT_EQ(code({{"sessionId", session}, {"prompt", Json::array()}}), -32602);
  EXPECT_EQ(code(Client::text_prompt(session, "  ")), -32602);
  EXPECT_EQ(code({{"sessionId", session}, {"prompt", Json::array({{{"type", "resource_link"}, {"uri", "file:///f.py"}, {"name", "f"}}})}}), -32602);
  EXPECT_EQ(code(Client::text_prompt(session, kTask, {{"budget", {{"tokens", 1'000'000'000}}}})), -32602);
  EXPECT_EQ(client.call("session/prompt", Client::text_prompt(session, kTask))["result"]["stopReason"], "end_turn") << "the session still works";
}

TEST(AcpPeerTest, BudgetsRideInMetaAndTheirEndIsAStopReason) {
  Service service;
  service.answer = [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(5)), 40); };
  Client client(service);
  client.initialize();
  client.respond = choose("person");
  const std::string session = client.new_session();
  const Json rounds = client.call("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"rounds", 0}}}}));
  EXPECT_EQ(rounds["result"]["stopReason"], "max_turn_requests");
  EXPECT_EQ(rounds["result"]["_meta"]["fixpoint"]["program"], agent::program(5)) << "the best one so far";
  EXPECT_FALSE(rounds["result"]["_meta"]["fixpoint"]["escalation"].get<std::string>().empty());
  const Json tokens = client.call("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"tokens", 40}}}}));
  EXPECT_EQ(tokens["result"]["stopReason"], "max_tokens");
}

TEST(AcpPeerTest, EscalationAsksAndGrantsMoreRounds) {
  Service service;
  service.answer = [](const agent::GenerateRequest& request, std::stop_token) { return agent::answer(wrong_then_right(request)); };
  Client client(service);
  client.initialize();
  client.respond = choose("more_rounds");
  const std::string session = client.new_session();
  const Json end = client.call("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"rounds", 0}}}}));
  EXPECT_EQ(end["result"]["stopReason"], "end_turn") << end;
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["outcome"], "solved");
  ASSERT_EQ(client.requests.size(), 1U);
  EXPECT_EQ(client.requests[0]["method"], "session/request_permission");
  EXPECT_NE(client.text_of("agent_thought_chunk").find("3 rounds granted"), std::string::npos);
}

TEST(AcpPeerTest, EscalationAsksTheSpecialist) {
  Service service(true);
  service.answer = [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(5))); };
  Client client(service);
  client.initialize();
  client.respond = choose("specialist");
  const std::string session = client.new_session();
  const Json end = client.call("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"rounds", 0}}}}));
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["outcome"], "solved") << end;
  ASSERT_EQ(service.specialist.requests().size(), 1U);
  EXPECT_NE(service.specialist.requests()[0].messages.back().content.find(agent::program(5)), std::string::npos) << "it is told what was tried";
}

TEST(AcpPeerTest, EscalationTakesTheBest) {
  Service service;
  service.answer = [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(6))); };
  Client client(service);
  client.initialize();
  client.respond = choose("take_best");
  const std::string session = client.new_session();
  const Json end = client.call("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"rounds", 0}}}}));
  EXPECT_EQ(end["result"]["stopReason"], "end_turn") << end;
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["outcome"], "declined");
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["program"], agent::program(6));
}

TEST(AcpPeerTest, AClientThatCannotAskLeavesItToAPerson) {
  Service service;
  service.answer = [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(6))); };
  Client client(service);
  client.initialize();
  client.respond = [](const Json&) { return Json{{"error", {{"code", -32601}, {"message", "no"}}}}; };
  const std::string session = client.new_session();
  const Json end = client.call("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"rounds", 0}}}}));
  EXPECT_EQ(end["result"]["stopReason"], "max_turn_requests");
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["outcome"], "handed_over");
}

/// A client with files: reads from a map, writes into it.
Responder with_files(std::map<std::string, std::string>& files, const std::string& permission) {
  return [&files, permission](const Json& request) -> std::optional<Json> {
    const std::string path = request["params"].value("path", "");
    if (request["method"] == "fs/read_text_file") {
      if (!files.contains(path)) return Json{{"error", {{"code", -32002}, {"message", "no such file"}}}};
      return Json{{"content", files[path]}};
    }
    if (request["method"] == "fs/write_text_file") {
      files[path] = request["params"]["content"];
      return Json::object();
    }
    return choose(permission)(request);
  };
}
Json link_prompt(const std::string& session, const std::string& path) {
  return {{"sessionId", session},
          {"prompt", Json::array({{{"type", "text"}, {"text", "It must give back seven."}},
                                  {{"type", "resource_link"}, {"uri", "file://" + path}, {"name", "f.py"}}})}};
}

TEST(AcpPeerTest, ReadsLinkedFilesAndTestsNextToThemAndWritesTheResultWhenAllowed) {
  Service service;
  std::map<std::string, std::string> files{{"/w/f.py", agent::program(6)}, {"/w/tests/test_f.py", "assert f(1) == 7\n"}};
  Client client(service);
  client.initialize(true, true);
  client.respond = with_files(files, "write");
  const Json end = client.call("session/prompt", link_prompt(client.new_session(), "/w/f.py"));
  ASSERT_TRUE(end.contains("result")) << end;
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["written"], "/w/f.py");
  EXPECT_EQ(files["/w/f.py"], agent::program(7));
  EXPECT_EQ(client.updates("tool_call").back()["content"][0]["oldText"], agent::program(6));
}

TEST(AcpPeerTest, LeavesTheFileWhereThePersonSaysSo) {
  Service service;
  std::map<std::string, std::string> files{{"/w/f.py", agent::program(6)}, {"/w/test_f.py", "assert f(1) == 7\n"}};
  Client client(service);
  client.initialize(true, true);
  client.respond = with_files(files, "leave");
  const std::string session = client.new_session();
  const Json end = client.call("session/prompt", link_prompt(session, "/w/f.py"));
  EXPECT_EQ(end["result"]["stopReason"], "end_turn");
  EXPECT_EQ(files["/w/f.py"], agent::program(6));
  // In the mode "write" nobody is asked.
  EXPECT_TRUE(client.call("session/set_mode", {{"sessionId", session}, {"modeId", "write"}}).contains("result"));
  client.call("session/prompt", link_prompt(session, "/w/f.py"));
  EXPECT_EQ(files["/w/f.py"], agent::program(7));
}

TEST(AcpPeerTest, AlwaysMeansTheModeChanges) {
  Service service;
  std::map<std::string, std::string> files{{"/w/f.py", agent::program(6)}, {"/w/test_f.py", "assert f(1) == 7\n"}};
  Client client(service);
  client.initialize(true, true);
  client.respond = with_files(files, "always");
  client.call("session/prompt", link_prompt(client.new_session(), "/w/f.py"));
  EXPECT_EQ(files["/w/f.py"], agent::program(7));
  ASSERT_EQ(client.updates("current_mode_update").size(), 1U);
  EXPECT_EQ(client.updates("current_mode_update")[0]["currentModeId"], "write");
}

TEST(AcpPeerTest, OptionsAreSetAndAnnouncedToOthers) {
  Service service;
  Client client(service), other(service);
  client.initialize();
  other.initialize();
  const std::string session = client.new_session();
  other.call("session/resume", {{"sessionId", session}, {"cwd", "/work"}});
  const Json reply = client.call("session/set_config_option", {{"sessionId", session}, {"configId", "rounds"}, {"value", "1"}});
  EXPECT_EQ(reply["result"]["configOptions"][0]["currentValue"], "1") << reply;
  other.until([&] { return !other.updates("config_option_update").empty(); }, "the announcement");
  EXPECT_EQ(client.call("session/set_config_option", {{"sessionId", session}, {"configId", "rounds"}, {"value", "11"}})["error"]["code"], -32602);
  EXPECT_EQ(client.call("session/set_config_option", {{"sessionId", session}, {"configId", "x"}, {"value", "1"}})["error"]["code"], -32602);
  EXPECT_EQ(client.call("session/set_mode", {{"sessionId", session}, {"modeId", "x"}})["error"]["code"], -32602);
}

TEST(AcpPeerTest, ASecondPromptWaitsForTheFirst) {
  Service service;
  std::latch begun(1), go(1);
  service.answer = [&](const agent::GenerateRequest&, std::stop_token) {
    begun.count_down();
    go.wait();
    return agent::answer(agent::fenced(agent::program(7)));
  };
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  const int first = client.request("session/prompt", Client::text_prompt(session, kTask));
  begun.wait();
  EXPECT_EQ(client.call("session/prompt", Client::text_prompt(session, kTask))["error"]["code"], -32001);
  go.count_down();
  EXPECT_EQ(client.response(first)["result"]["stopReason"], "end_turn");
}

TEST(AcpPeerTest, CancelWhileAModelWrites) {
  Service service;
  std::latch begun(1);
  service.answer = [&](const agent::GenerateRequest&, std::stop_token stop) -> tl::expected<agent::Generation, agent::GenerateError> {
    begun.count_down();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait(lock, stop, [] { return false; });
    return tl::unexpected(agent::GenerateError{.kind = agent::GenerateError::Kind::cancelled});
  };
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  const int id = client.request("session/prompt", Client::text_prompt(session, kTask));
  begun.wait();
  client.notify("session/cancel", {{"sessionId", session}});
  EXPECT_EQ(client.response(id)["result"]["stopReason"], "cancelled");
  EXPECT_EQ(service.hub->at_work(), 0U);
  service.answer = [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(7))); };
  EXPECT_EQ(client.call("session/prompt", Client::text_prompt(session, kTask))["result"]["stopReason"], "end_turn") << "the next one works";
}

TEST(AcpPeerTest, CancelWhileAProgramRuns) {
  Service service;
  std::latch begun(1);
  service.checker.before = [&](std::stop_token stop) {
    begun.count_down();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait(lock, stop, [] { return false; });
  };
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  const int id = client.request("session/prompt", Client::text_prompt(session, kTask));
  begun.wait();
  client.notify("$/cancel_request", {{"requestId", id}});
  EXPECT_EQ(client.response(id)["result"]["stopReason"], "cancelled");
  EXPECT_EQ(client.updates("tool_call_update").back()["status"], "failed");
}

TEST(AcpPeerTest, CancelWhileFilesAreRead) {
  Service service;
  Client client(service);
  client.initialize(true, false);  // and never answers
  const std::string session = client.new_session();
  const int id = client.request("session/prompt", link_prompt(session, "/w/f.py"));
  client.until([&] { return client.requests.size() == 1; }, "the read");
  client.notify("session/cancel", {{"sessionId", session}});
  EXPECT_EQ(client.response(id)["result"]["stopReason"], "cancelled");
  const bool told = std::any_of(client.frames.begin(), client.frames.end(), [](const Json& frame) { return frame.value("method", "") == "$/cancel_request"; });
  EXPECT_TRUE(told);
  EXPECT_TRUE(client.peer->idle());
}

TEST(AcpPeerTest, CancelWhileAPersonIsAsked) {
  Service service;
  service.answer = [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(6))); };
  Client client(service);
  client.initialize();  // and never answers
  const std::string session = client.new_session();
  const int id = client.request("session/prompt", Client::text_prompt(session, kTask, {{"budget", {{"rounds", 0}}}}));
  client.until([&] { return client.requests.size() == 1; }, "the question");
  client.notify("session/cancel", {{"sessionId", session}});
  const Json end = client.response(id);
  EXPECT_EQ(end["result"]["stopReason"], "cancelled");
  EXPECT_EQ(end["result"]["_meta"]["fixpoint"]["outcome"], "handed_over") << "what had ended stays ended";
}

TEST(AcpPeerTest, CancelWhileItWaitsForAPlace) {
  Service service;
  service.services.max_running_sessions = 1;
  service.restart();
  std::latch begun(1), go(1);
  std::atomic<int> asked{0};
  service.answer = [&](const agent::GenerateRequest&, std::stop_token) {
    if (asked++ == 0) begun.count_down();
    go.wait();
    return agent::answer(agent::fenced(agent::program(7)));
  };
  Client client(service);
  client.initialize();
  const std::string first = client.new_session(), second = client.new_session();
  const int running = client.request("session/prompt", Client::text_prompt(first, kTask));
  begun.wait();
  const int waiting = client.request("session/prompt", Client::text_prompt(second, kTask));
  client.notify("session/cancel", {{"sessionId", second}});
  EXPECT_EQ(client.response(waiting)["result"]["stopReason"], "cancelled");
  go.count_down();
  EXPECT_EQ(client.response(running)["result"]["stopReason"], "end_turn");
  EXPECT_EQ(client.call("session/prompt", Client::text_prompt(second, kTask))["result"]["stopReason"], "end_turn");
}

TEST(AcpPeerTest, LoadReplaysAllAndResumeTheRest) {
  Service service;
  service.answer = [](const agent::GenerateRequest& request, std::stop_token) { return agent::answer(wrong_then_right(request)); };
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  client.call("session/prompt", Client::text_prompt(session, kTask));
  client.call("session/prompt", Client::text_prompt(session, kTask));
  const std::int64_t last = client.last_seq();

  Client loaded(service);
  loaded.initialize();
  const Json reply = loaded.call("session/load", {{"sessionId", session}, {"cwd", "/work"}, {"mcpServers", Json::array()}});
  EXPECT_EQ(reply["result"]["_meta"]["fixpoint"]["lastSeq"], last);
  EXPECT_EQ(loaded.last_seq(), last) << "all of it before the answer";
  EXPECT_EQ(loaded.updates("user_message_chunk").size(), 2U);
  EXPECT_EQ(loaded.text_of("agent_message_chunk"), client.text_of("agent_message_chunk"));
  EXPECT_EQ(loaded.text_of("agent_thought_chunk"), client.text_of("agent_thought_chunk"));
  EXPECT_EQ(loaded.updates("tool_call"), client.updates("tool_call"));

  Client resumed(service);
  resumed.initialize();
  resumed.call("session/resume", {{"sessionId", session}, {"cwd", "/work"}, {"_meta", {{"fixpoint", {{"lastSeq", last - 2}}}}}});
  resumed.until([&] { return resumed.last_seq() == last; }, "the rest");
  EXPECT_EQ(resumed.numbers().size(), 2U);
  Client quiet(service);
  quiet.initialize();
  quiet.call("session/resume", {{"sessionId", session}, {"cwd", "/work"}});
  while (quiet.pump()) {}
  EXPECT_TRUE(quiet.numbers().empty()) << "without a number nothing is replayed";
  const Json beyond = quiet.call("session/resume", {{"sessionId", session}, {"cwd", "/"}, {"_meta", {{"fixpoint", {{"lastSeq", last + 1}}}}}});
  EXPECT_EQ(beyond["error"]["code"], -32602);
}

TEST(AcpPeerTest, TwoWatchersSeeTheSame) {
  Service service;
  service.answer = [](const agent::GenerateRequest& request, std::stop_token) { return agent::answer(wrong_then_right(request)); };
  Client client(service), other(service);
  client.initialize();
  other.initialize();
  const std::string session = client.new_session();
  other.call("session/load", {{"sessionId", session}, {"cwd", "/work"}, {"mcpServers", Json::array()}});
  client.call("session/prompt", Client::text_prompt(session, kTask));
  other.until([&] { return other.last_seq() == client.last_seq(); }, "all updates");
  EXPECT_EQ(other.text_of("user_message_chunk"), "Write `f(x)`. Give back seven.") << "the other one did not ask";
  EXPECT_EQ(other.text_of("agent_message_chunk"), client.text_of("agent_message_chunk"));
  EXPECT_EQ(other.updates("tool_call_update"), client.updates("tool_call_update"));
}

TEST(AcpPeerTest, AWatcherMayCancelAnothersPrompt) {
  Service service;
  std::latch begun(1);
  service.checker.before = [&](std::stop_token stop) {
    begun.count_down();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait(lock, stop, [] { return false; });
  };
  Client client(service), other(service);
  client.initialize();
  other.initialize();
  const std::string session = client.new_session();
  other.call("session/resume", {{"sessionId", session}, {"cwd", "/work"}});
  const int id = client.request("session/prompt", Client::text_prompt(session, kTask));
  begun.wait();
  other.notify("session/cancel", {{"sessionId", session}});
  EXPECT_EQ(client.response(id)["result"]["stopReason"], "cancelled");
}

TEST(AcpPeerTest, ListPagesAndKeepsTenantsApart) {
  Service service;
  Principal acme{.tenant = "acme", .use = true}, other{.tenant = "other", .use = true};
  Client client(service, acme), stranger(service, other);
  client.initialize();
  stranger.initialize();
  std::vector<std::string> made;
  for (int i = 0; i < 60; ++i) made.push_back(client.new_session());
  const Json first = client.call("session/list", Json::object())["result"];
  EXPECT_EQ(first["sessions"].size(), 50U);
  EXPECT_EQ(first["sessions"][0]["sessionId"], made.back());
  const Json second = client.call("session/list", {{"cursor", first["nextCursor"]}})["result"];
  EXPECT_EQ(second["sessions"].size(), 10U);
  EXPECT_FALSE(second.contains("nextCursor"));
  EXPECT_TRUE(client.call("session/list", {{"cwd", "/elsewhere"}})["result"]["sessions"].empty());
  EXPECT_TRUE(stranger.call("session/list", Json::object())["result"]["sessions"].empty());
  EXPECT_EQ(stranger.call("session/load", {{"sessionId", made[0]}, {"cwd", "/"}, {"mcpServers", Json::array()}})["error"]["code"], -32002);
  EXPECT_EQ(stranger.call("session/close", {{"sessionId", made[0]}})["error"]["code"], -32002);
  EXPECT_EQ(stranger.call("session/list", {{"cursor", made[0]}})["error"]["code"], -32602);
  Client reviewer(service, Principal{.tenant = "acme", .review = true});
  reviewer.initialize();
  EXPECT_EQ(reviewer.call("session/list", Json::object())["error"]["code"], -32000);
}

TEST(AcpPeerTest, TheSamePromptSentAgainIsNotRunTwice) {
  Service service;
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  const Json first = client.call("session/prompt", Client::text_prompt(session, kTask, {{"promptKey", "k1"}}));
  const Json again = client.call("session/prompt", Client::text_prompt(session, kTask, {{"promptKey", "k1"}}));
  EXPECT_EQ(first["result"], again["result"]);
  EXPECT_EQ(service.model.requests().size(), 1U);
}

TEST(AcpPeerTest, CloseEndsTheWork) {
  Service service;
  std::latch begun(1);
  service.checker.before = [&](std::stop_token stop) {
    begun.count_down();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait(lock, stop, [] { return false; });
  };
  Client client(service);
  client.initialize();
  const std::string session = client.new_session();
  const int id = client.request("session/prompt", Client::text_prompt(session, kTask));
  begun.wait();
  EXPECT_TRUE(client.call("session/close", {{"sessionId", session}}).contains("result"));
  EXPECT_EQ(client.response(id)["result"]["stopReason"], "cancelled");
}

TEST(AcpPeerTest, AModelThatDoesNotWorkIsAnErrorWithItsReason) {
  Service service;
  service.answer = [](const agent::GenerateRequest&, std::stop_token) -> tl::expected<agent::Generation, agent::GenerateError> {
    return tl::unexpected(agent::GenerateError{.kind = agent::GenerateError::Kind::refused, .detail = "wrong key"});
  };
  Client client(service);
  client.initialize();
  const Json end = client.call("session/prompt", Client::text_prompt(client.new_session(), kTask));
  EXPECT_EQ(end["error"]["code"], -32603);
  EXPECT_NE(end["error"]["message"].get<std::string>().find("wrong key"), std::string::npos);
}

TEST(AcpPeerTest, LimitsOfATokenHoldForPrompts) {
  Service service;
  std::latch begun(1), go(1);
  service.answer = [&](const agent::GenerateRequest&, std::stop_token) {
    begun.count_down();
    go.wait();
    return agent::answer(agent::fenced(agent::program(7)));
  };
  Client client(service, {.tenant = "acme", .token_id = "t1", .use = true, .limits = {.sessions = 1}});
  client.initialize();
  const std::string first = client.new_session(), second = client.new_session();
  const int running = client.request("session/prompt", Client::text_prompt(first, kTask));
  begun.wait();
  EXPECT_EQ(client.call("session/prompt", Client::text_prompt(second, kTask))["error"]["code"], -32001);
  go.count_down();
  client.response(running);
}

}  // namespace
}  // namespace fixpoint::server
