#include "agent/openai_generator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/openai_stream.h"
#include "tests/agent/http_server.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

using std::chrono::milliseconds;
using Kind = GenerateError::Kind;

GenerateRequest hello() {
  GenerateRequest request;
  request.messages = {{Role::user, "Hello"}};
  request.max_tokens = 20;
  request.seed = 42;
  return request;
}

std::unique_ptr<Generator> client(const HttpServer& server, OpenAiOptions options = {}) {
  options.base_url = server.url("/v1#m");
  options.first_backoff = milliseconds(1);
  auto made = make_openai_generator(std::move(options));
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error());
  return *std::move(made);
}

TEST(OpenAiGeneratorTest, StreamsTextAndReadsUsage) {
  HttpServer server([](const SeenRequest&) { return streamed_answer({"Hel", "", "lo \xF0\x9F\x90\x8D"}); });
  std::vector<std::string> pieces;
  const auto result = client(server, {.key = "secret"})->generate(hello(), [&](std::string_view text) { pieces.emplace_back(text); }, {});
  ASSERT_TRUE(result.has_value()) << result.error().detail;
  EXPECT_EQ(result->text, "Hello \xF0\x9F\x90\x8D");
  EXPECT_EQ(pieces, (std::vector<std::string>{"Hel", "lo \xF0\x9F\x90\x8D"}));
  EXPECT_EQ(result->usage, (Usage{50, 48, 7}));
  EXPECT_EQ(result->finish, Finish::stop);
  const SeenRequest seen = server.seen().at(0);
  EXPECT_EQ(seen.target, "/v1/chat/completions");
  EXPECT_EQ(seen.header("authorization"), "Bearer secret");
  const auto body = nlohmann::json::parse(seen.body);
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["messages"][0]["content"], "Hello");
  EXPECT_EQ(body["max_tokens"], 20);
  EXPECT_EQ(body["seed"], 42);
  EXPECT_EQ(body["stream"], true);
}

TEST(OpenAiGeneratorTest, ReadsAnAnswerThatIsNotStreamed) {
  HttpServer server([](const SeenRequest&) {
    return whole_answer(200, "application/json",
                        R"({"choices":[{"message":{"content":"Hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1}})");
  });
  const auto result = client(server)->generate(hello(), {}, {});
  ASSERT_TRUE(result.has_value()) << result.error().detail;
  EXPECT_EQ(result->text, "Hi");
  EXPECT_EQ(result->finish, Finish::length);
}

TEST(OpenAiGeneratorTest, ChunkedBodiesAreJoined) {
  HttpServer server([](const SeenRequest&) {
    const std::string event = "data: {\"choices\":[{\"delta\":{\"content\":\"ab\"},\"finish_reason\":\"stop\"}]}\n\n";
    ServerAnswer answer{.pieces = {http_head(200, "text/event-stream", "Transfer-Encoding: chunked\r\n")}};
    for (const char c : event) answer.pieces.push_back("1\r\n" + std::string(1, c) + "\r\n");
    answer.pieces.push_back("0\r\n\r\n");
    return answer;
  });
  EXPECT_EQ(client(server)->generate(hello(), {}, {})->text, "ab");
}

TEST(OpenAiGeneratorTest, AnOverloadedServerIsAskedAgain) {
  std::atomic<int> calls{0};
  HttpServer server([&calls](const SeenRequest&) {
    ++calls;
    if (calls == 1) return whole_answer(429, "application/json", R"({"error":{"message":"slow down"}})", "Retry-After: 0\r\n");
    if (calls == 2) return whole_answer(503, "text/html", "<html>");
    return streamed_answer({"ok"});
  });
  EXPECT_EQ(client(server)->generate(hello(), {}, {})->text, "ok");
  EXPECT_EQ(calls, 3);
}

TEST(OpenAiGeneratorTest, ARefusalIsNotRepeatedAndNeverShowsTheKey) {
  std::atomic<int> calls{0};
  HttpServer server([&calls](const SeenRequest&) {
    ++calls;
    return whole_answer(401, "application/json", R"({"error":{"message":"Incorrect key: sk-12345"}})");
  });
  const auto result = client(server, {.key = "sk-12345"})->generate(hello(), {}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::refused);
  EXPECT_EQ(result.error().detail, "HTTP 401: Incorrect key: ***");
  EXPECT_EQ(calls, 1);
}

TEST(OpenAiGeneratorTest, APromptThatIsTooLongIsToldApart) {
  HttpServer server([](const SeenRequest&) {
    return whole_answer(400, "application/json", R"({"object":"error","message":"This model's maximum context length is 4096 tokens."})");
  });
  EXPECT_EQ(client(server)->generate(hello(), {}, {}).error().kind, Kind::too_long);
}

TEST(OpenAiGeneratorTest, AnAnswerThatBreaksOffKeepsItsBeginningAndIsNotRepeated) {
  std::atomic<int> calls{0};
  HttpServer server([&calls](const SeenRequest&) {
    ++calls;
    return ServerAnswer{.pieces = {http_head(200, "text/event-stream"), "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n"}};
  });
  const auto result = client(server)->generate(hello(), {}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::unavailable);
  EXPECT_EQ(result.error().partial, "half");
  EXPECT_EQ(calls, 1);
}

TEST(OpenAiGeneratorTest, GarbageIsMalformed) {
  HttpServer events([](const SeenRequest&) { return ServerAnswer{.pieces = {http_head(200, "text/event-stream"), "data: {oops\n\n"}}; });
  EXPECT_EQ(client(events)->generate(hello(), {}, {}).error().kind, Kind::malformed);
  HttpServer document([](const SeenRequest&) { return whole_answer(200, "application/json", "[]"); });
  EXPECT_EQ(client(document)->generate(hello(), {}, {}).error().kind, Kind::malformed);
  HttpServer failing([](const SeenRequest&) {
    return ServerAnswer{.pieces = {http_head(200, "text/event-stream"), "data: {\"error\":{\"message\":\"out of memory\"}}\n\n"}};
  });
  EXPECT_NE(client(failing)->generate(hello(), {}, {}).error().detail.find("out of memory"), std::string::npos);
}

TEST(OpenAiGeneratorTest, AServerThatWritesOnAndOnIsCut) {
  HttpServer server([](const SeenRequest&) { return streamed_answer(std::vector<std::string>(1'000, "word ")); });
  const auto result = client(server)->generate(hello(), {}, {});
  ASSERT_TRUE(result.has_value()) << result.error().detail;
  EXPECT_EQ(result->finish, Finish::length);
  EXPECT_LE(result->text.size(), 21U * 5U);
  EXPECT_LE(result->usage.completion_tokens, 20);
}

TEST(OpenAiGeneratorTest, ASilentServerTimesOut) {
  HttpServer server([](const SeenRequest&) { return ServerAnswer{.hold = true}; });
  GenerateRequest request = hello();
  request.timeout = milliseconds(60);
  const auto result = client(server)->generate(request, {}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::timeout);
}

TEST(OpenAiGeneratorTest, AStopRequestClosesTheConnection) {
  std::stop_source stop;
  {
    HttpServer server([](const SeenRequest&) {
      return ServerAnswer{.pieces = {http_head(200, "text/event-stream"), "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"}, .hold = true};
    });
    const auto result = client(server)->generate(hello(), [&stop](std::string_view) { stop.request_stop(); }, stop.get_token());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind, Kind::cancelled);
  }
}

TEST(OpenAiGeneratorTest, NobodyListening) {
  std::string url;
  { url = HttpServer([](const SeenRequest&) { return ServerAnswer{}; }).url("/v1#m"); }
  const auto made = make_openai_generator({.base_url = url, .retries = 1, .first_backoff = milliseconds(1)});
  const auto result = (*made)->generate(hello(), {}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::unavailable);
}

TEST(OpenAiGeneratorTest, TheFirstListedModelIsTakenWhereNoneIsNamed) {
  HttpServer server([](const SeenRequest& request) {
    if (request.method == "GET") return whole_answer(200, "application/json", R"({"data":[{"id":"listed"}]})");
    return streamed_answer({"ok"});
  });
  const auto made = make_openai_generator({.base_url = server.url("/v1/")});
  ASSERT_TRUE((*made)->generate(hello(), {}, {}).has_value());
  EXPECT_EQ(server.seen().at(0).target, "/v1/models");
  EXPECT_EQ(nlohmann::json::parse(server.seen().at(1).body)["model"], "listed");
}

TEST(OpenAiGeneratorTest, TlsVerifiesTheServer) {
  HttpServer server([](const SeenRequest&) { return streamed_answer({"safe"}); }, true);
  const TestFolder folder;
  std::ofstream(folder.file("ca.pem")) << server.certificate();
  EXPECT_EQ(client(server, {.ca_file = folder.file("ca.pem").string()})->generate(hello(), {}, {})->text, "safe");
  const auto unknown = client(server)->generate(hello(), {}, {});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().kind, Kind::refused);
}

TEST(OpenAiGeneratorTest, AddressesAreChecked) {
  EXPECT_FALSE(make_openai_generator({.base_url = "localhost:8000"}).has_value());
  EXPECT_FALSE(make_openai_generator({.base_url = "http://host:99999/v1"}).has_value());
  EXPECT_FALSE(make_openai_generator({.base_url = "http://user:pw@host/v1"}).has_value());
  EXPECT_TRUE(make_openai_generator({.base_url = "https://[::1]:8000/v1"}).has_value());
}

TEST(OpenAiGeneratorTest, DrivesAWholeLoop) {
  std::atomic<int> calls{0};
  HttpServer server([&calls](const SeenRequest&) { return streamed_answer({fenced(program(++calls == 1 ? 1 : 7), "Hm.")}); });
  const auto model = client(server);
  NumberChecker checker;
  Loop loop({.model = model.get(), .checker = &checker});
  const auto result = loop.run(make_task(), {}, {}, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::solved);
  EXPECT_EQ(result->end.usage.cached_tokens, 96);
}

TEST(OpenAiGeneratorTest, AKeyOfAsterisksIsHiddenToo) {
  HttpServer server([](const SeenRequest&) { return whole_answer(401, "application/json", R"({"error": "no such key: *****"})"); });
  const auto result = client(server, {.key = "**"})->generate(hello(), {}, {});
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().detail.ends_with("no such key: *******")) << result.error().detail;
}

/// Arrivals of an answer of these choices.
std::size_t arrivals_of(const std::vector<std::string>& choices) {
  HttpServer server([&choices](const SeenRequest&) {
    ServerAnswer answer{.pieces = {http_head(200, "text/event-stream")}};
    for (const std::string& choice : choices) answer.pieces.push_back("data: {\"choices\": [" + choice + "]}\n\n");
    answer.pieces.push_back("data: [DONE]\n\n");
    return answer;
  });
  const auto stream = make_openai_stream({.base_url = server.url("/v1#m")});
  if (!stream) return 0;
  const auto answer = (*stream)->ask({.prompt = "Hello"}, {});
  EXPECT_TRUE(answer) << answer.error().detail;
  return answer ? answer->arrivals.size() : 0;
}

TEST(OpenAiStreamTest, EventsThatStandForNoTokenAreNoPieces) {
  const std::string role = R"({"delta": {"role": "assistant", "content": ""}, "finish_reason": null})";
  const std::string piece = R"({"delta": {"content": "a"}, "finish_reason": null})";
  const std::string half_a_character = R"({"delta": {"content": ""}, "finish_reason": null})";
  const std::string end = R"({"delta": {}, "finish_reason": "length"})";
  EXPECT_EQ(arrivals_of({role, piece, half_a_character, piece, end}), 3U);
  EXPECT_EQ(arrivals_of({role, piece, R"({"delta": {"content": "b"}, "finish_reason": "length"})"}), 2U) << "a last event with text";
  EXPECT_EQ(arrivals_of({R"({"delta": {"role": "assistant", "content": "a"}})", end}), 1U) << "a first event with text";
  EXPECT_EQ(arrivals_of({R"({"text": "a"})", R"({"text": "", "finish_reason": "length"})"}), 1U);
  EXPECT_EQ(arrivals_of({role, end}), 1U) << "there was an answer";
}

}  // namespace
}  // namespace fixpoint::agent
