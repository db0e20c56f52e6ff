#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/agent/http_server.h"
#include "tests/cli/program.h"

namespace fixpoint::cli_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using nlohmann::json;

using BenchLoopTest = ProgramTest;

const std::vector<std::string> kSmall{"bench", "loop", "--sessions", "2", "--rounds", "3", "--shared", "40", "--task", "8", "--attempt", "6", "--feedback", "8"};

std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> words = kSmall;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Events of a plain completion, as llama.cpp's server sends them where `timings`, else as OpenAI's does.
agent::ServerAnswer completion(int tokens, bool timings) {
  agent::ServerAnswer answer{.pieces = {agent::http_head(200, "text/event-stream")}};
  const auto event = [&answer](const json& it) { answer.pieces.push_back("data: " + it.dump() + "\n\n"); };
  for (int i = 0; i < tokens; ++i) event({{"choices", {{{"index", 0}, {"text", "x"}, {"finish_reason", nullptr}}}}});
  json last{{"choices", {{{"index", 0}, {"text", ""}, {"finish_reason", "length"}}}}, {"usage", {{"prompt_tokens", 50}, {"completion_tokens", tokens}}}};
  if (timings) last["timings"] = {{"prompt_n", 20}};
  if (!timings) last["usage"]["prompt_tokens_details"] = {{"cached_tokens", 48}};
  event(last);
  answer.pieces.push_back("data: [DONE]\n\n");
  return answer;
}

TEST_F(BenchLoopTest, OurEngineAnswersEveryRoundAndTakesTheSharedContextFromItsCache) {
  auto words = small({"-m", model(), "--threads", "1", "--kv-memory", "8M", "--json"});
  const Ran measured = run(words);
  ASSERT_EQ(measured.code, 0) << measured.err;
  const json result = measured.json();
  EXPECT_EQ(result["rounds"], 6);
  EXPECT_EQ(result["sessions"], 2);
  EXPECT_EQ(result["completion_tokens"], 36);
  EXPECT_EQ(result["short_answers"], 0);
  EXPECT_GT(result["cached_tokens"].get<int>(), result["prompt_tokens"].get<int>() / 3) << measured.out;
  for (const char* key : {"wall_s", "rounds_per_s", "tokens_per_s"}) EXPECT_GT(result[key].get<double>(), 0.0) << key;
  for (const char* key : {"ttft_ms", "first_round_ttft_ms", "later_rounds_ttft_ms", "token_ms", "gap_ms"}) {
    EXPECT_GE(result[key]["max"].get<double>(), result[key]["median"].get<double>()) << key;
    EXPECT_GT(result[key]["median"].get<double>(), 0.0) << key;
  }
  words.pop_back();
  const Ran table = run(words);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("rounds/s"), HasSubstr("first token, later rounds"), HasSubstr("cached"), Not(HasSubstr("nan"))));
}

TEST_F(BenchLoopTest, AServerIsAskedForForcedLengthsAndTheRecordedHistory) {
  agent::HttpServer server([](const agent::SeenRequest&) { return completion(6, false); });
  const Ran ran = run(small({"--url", server.url("/v1"), "-m", "some", "--json"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["cached_tokens"], 6 * 48);
  EXPECT_EQ(ran.json()["prompt_tokens"], 6 * 50);
  std::vector<std::string> prompts;
  for (const auto& seen : server.seen()) {
    EXPECT_EQ(seen.target, "/v1/completions");
    const json body = json::parse(seen.body);
    EXPECT_EQ(body["model"], "some");
    EXPECT_EQ(body["ignore_eos"], true);
    EXPECT_EQ(body["stream"], true);
    if (body["prompt"] == "\n") continue;  // the warm-up
    EXPECT_EQ(body["max_tokens"], 6);
    prompts.push_back(body["prompt"]);
    const bool first = prompts.back().find("Round 1") == std::string::npos;
    EXPECT_EQ(body.contains("prediction"), !first);
    if (!first) {
      EXPECT_THAT(prompts.back(), HasSubstr(body["prediction"]["content"].get<std::string>()));
    }
  }
  ASSERT_EQ(prompts.size(), 6U);
  // The same bytes whatever the server wrote.
  const Ran recorded = run(small({"--url", server.url("/v1"), "-m", "some", "--record", file("trace").string()}));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const Ran replayed = run({"bench", "loop", "--url", server.url("/v1"), "-m", "some", "--trace", file("trace").string()});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  std::vector<std::string> again;
  const auto all = server.seen();
  for (auto it = all.end() - 6; it != all.end(); ++it) again.push_back(json::parse(it->body)["prompt"]);
  std::sort(prompts.begin(), prompts.end());
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, prompts);
}

TEST_F(BenchLoopTest, AServerThatRefusesPredictionsIsAskedWithoutThemAndTheReaderIsTold) {
  agent::HttpServer server([](const agent::SeenRequest& request) {
    if (json::parse(request.body).contains("prediction")) return agent::whole_answer(400, "application/json", R"({"error": {"message": "prediction is unknown"}})");
    return completion(6, true);
  });
  const Ran ran = run(small({"--url", server.url("/v1"), "-m", "some"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("6 rounds answered"), HasSubstr("'prediction'"), HasSubstr("180 cached"))) << "prompt_n of 50";
  const auto seen = server.seen();
  ASSERT_EQ(seen.size(), 8U) << "the warm-up twice, then the rounds";
  EXPECT_TRUE(json::parse(seen[0].body).contains("prediction")) << "a refusal is found out before the clock runs";
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_FALSE(json::parse(seen[i].body).contains("prediction")) << i;
}

TEST_F(BenchLoopTest, PredictionsThatAreNotWantedAreNotSent) {
  agent::HttpServer server([](const agent::SeenRequest&) { return completion(6, true); });
  ASSERT_EQ(run(small({"--url", server.url("/v1"), "-m", "some", "--no-prediction"})).code, 0);
  for (const auto& seen : server.seen()) EXPECT_FALSE(json::parse(seen.body).contains("prediction"));
}

TEST_F(BenchLoopTest, AnswersThatAreShorterThanAskedAreCountedAndTheReaderIsTold) {
  agent::HttpServer server([](const agent::SeenRequest& request) {
    return completion(request.body.find("Round 1") == std::string::npos ? 6 : 5, false);  // of six
  });
  const Ran table = run(small({"--url", server.url("/v1"), "-m", "some"}));
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("4 answers had fewer tokens than asked: the numbers are not comparable"));
  EXPECT_EQ(run(small({"--url", server.url("/v1"), "-m", "some", "--json"})).json()["short_answers"], 4);
}

TEST_F(BenchLoopTest, AConversationIsAskedWhereTheModelsOwnFormatIsWanted) {
  agent::HttpServer server([](const agent::SeenRequest& request) {
    return request.target == "/v1/chat/completions" ? agent::streamed_answer({"a", "b", "c", "d", "e", "f"})
                                                    : agent::whole_answer(404, "application/json", "{}");
  });
  const Ran ran = run(small({"--url", server.url("/v1"), "-m", "some", "--chat", "--json"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["rounds"], 6);
  EXPECT_EQ(ran.json()["short_answers"], 0);
  const json last = json::parse(server.seen().back().body);
  ASSERT_EQ(last["messages"].size(), 5U);
  EXPECT_EQ(last["messages"][1]["role"], "assistant");
}

TEST_F(BenchLoopTest, ASessionThatBreaksOffMakesTheCommandFailAndSaysWhy) {
  agent::HttpServer server([](const agent::SeenRequest& request) {
    const bool later = request.body.find("Round 2") != std::string::npos;
    return later ? agent::whole_answer(500, "application/json", R"({"error": {"message": "out of slots"}})") : completion(6, false);
  });
  const Ran ran = run(small({"--url", server.url("/v1"), "-m", "some", "--json"}));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("2 of 2 sessions"), HasSubstr("round 2"), HasSubstr("out of slots")));
  EXPECT_EQ(ran.json()["rounds"], 4);
  EXPECT_EQ(ran.json()["failures"].size(), 2U);
}

TEST_F(BenchLoopTest, WrongUseIsNamed) {
  const Ran nothing = run({"bench", "loop"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--url"));
  EXPECT_EQ(run({"bench"}).code, 2);
  EXPECT_EQ(run({"bench", "loop", "-m", model(), "--edit-rate", "1.5"}).code, 2);
  EXPECT_EQ(run({"bench", "loop", "-m", model(), "--trace", "t", "--shared", "9"}).code, 2);
  write(file("bad.jsonl"), "{\"fixpoint_loop_trace\": 1}\n{\"session\": \"a\"}\n");
  const Ran bad = run({"bench", "loop", "-m", model(), "--trace", file("bad.jsonl").string()});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.jsonl:2: field 'round'"));
}

}  // namespace
}  // namespace fixpoint::cli_tests
