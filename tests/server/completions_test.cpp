#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/server/service.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

struct CompletionsTest : ::testing::Test {
  Service service;
  explicit CompletionsTest(engine::Speculation speculation = engine::Speculation::measured) : service(speculation) { service.start(); }

  static std::string chat(const std::string& more, const std::string& text = "Write a function") {
    return json{{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", text}}}}, {"temperature", 0}}.dump().insert(1, more.empty() ? "" : more + ",");
  }
  static std::string plain(const std::string& more, const std::string& prompt = "\"return the\"") {
    return R"({"prompt":)" + prompt + R"(,"temperature":0)" + (more.empty() ? "" : "," + more) + "}";
  }
  json post(const std::string& path, const std::string& body, int status = 200) const {
    const Reply reply = service.post(path, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.header("content-type"), "application/json");
    return json::parse(reply.body);
  }
  std::vector<json> stream(const std::string& path, const std::string& body) const {
    const Reply reply = service.post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.header("content-type"), "text/event-stream; charset=utf-8");
    std::vector<std::string> events = events_of(reply.body);
    EXPECT_FALSE(events.empty());
    EXPECT_EQ(events.back(), "[DONE]");
    events.pop_back();
    std::vector<json> out;
    for (const std::string& event : events) out.push_back(json::parse(event));
    return out;
  }
};

TEST_F(CompletionsTest, AChatIsAnsweredWithTextReasonAndUsage) {
  const json answer = post("/v1/chat/completions", chat(R"("max_tokens":8,"ignore_eos":true)"));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("chatcmpl-"));
  ASSERT_EQ(answer["choices"].size(), 1U);
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  EXPECT_FALSE(answer["choices"][0]["message"]["content"].get<std::string>().empty());
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 8);
  EXPECT_GT(answer["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(answer["usage"]["total_tokens"], answer["usage"]["prompt_tokens"].get<int>() + 8);
}

TEST_F(CompletionsTest, AStreamHasTheRoleFirstTheReasonLastAndTheSameText) {
  const json whole = post("/v1/chat/completions", chat(R"("max_tokens":24,"ignore_eos":true)"));
  const auto chunks = stream("/v1/chat/completions", chat(R"("max_tokens":24,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_GE(chunks.size(), 4U);
  EXPECT_EQ(chunks[0]["choices"][0]["delta"], (json{{"role", "assistant"}, {"content", ""}}));
  std::string text;
  for (const json& chunk : chunks) {
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["id"], chunks[0]["id"]);
    if (!chunk["choices"].empty()) text += chunk["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"]);
  const json& last = chunks[chunks.size() - 2];
  EXPECT_EQ(last["choices"][0]["delta"], json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(last["usage"].is_null());
  EXPECT_EQ(chunks.back()["choices"], json::array());
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], 24);
}

TEST_F(CompletionsTest, TextAndTokensOfAPromptGiveTheSameCompletion) {
  const json tokens = post("/tokenize", R"({"prompt":"return the"})");
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(post("/detokenize", json{{"tokens", tokens["tokens"]}}.dump())["prompt"], "return the");
  const json a = post("/v1/completions", plain(R"("max_tokens":6)"));
  const json b = post("/v1/completions", plain(R"("max_tokens":6)", tokens["tokens"].dump()));
  EXPECT_EQ(a["object"], "text_completion");
  EXPECT_EQ(a["choices"][0]["text"], b["choices"][0]["text"]);
  const json both = post("/v1/completions", plain(R"("max_tokens":6,"n":2,"echo":true)", R"(["return the","return the"])"));
  ASSERT_EQ(both["choices"].size(), 4U);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(both["choices"][i]["index"], i);
    EXPECT_EQ(both["choices"][i]["text"], "return the" + a["choices"][0]["text"].get<std::string>());
  }
  EXPECT_EQ(both["usage"]["completion_tokens"], 24);
  EXPECT_EQ(both["usage"]["prompt_tokens"], 2 * tokens["count"].get<int>());
}

TEST_F(CompletionsTest, AStreamedCompletionJoinsToTheWholeForEachChoice) {
  const json whole = post("/v1/completions", plain(R"("max_tokens":9,"ignore_eos":true,"n":2)"));
  std::vector<std::string> texts(2);
  for (const json& chunk : stream("/v1/completions", plain(R"("max_tokens":9,"ignore_eos":true,"n":2,"stream":true)"))) {
    texts[chunk["choices"][0]["index"].get<std::size_t>()] += chunk["choices"][0]["text"].get<std::string>();
  }
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
}

TEST_F(CompletionsTest, AStopStringEndsTheTextBeforeIt) {
  const std::string text = post("/v1/completions", plain(R"("max_tokens":12,"ignore_eos":true)"))["choices"][0]["text"];
  std::size_t at = 1;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) >= 0x80U || text.find(text[at]) != at)) ++at;
  ASSERT_LT(at, text.size()) << "the model repeats itself: " << text;
  const std::string stop(1, text[at]);
  const json answer = post("/v1/completions", plain(R"("max_tokens":12,"ignore_eos":true,"stop":)" + json(stop).dump()));
  EXPECT_EQ(answer["choices"][0]["text"], text.substr(0, at));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["choices"][0]["stop_reason"], stop);
}

TEST_F(CompletionsTest, SeedsRepeatAndChoicesDiffer) {
  const std::string sampled = R"({"prompt":"return the","temperature":1.5,"max_tokens":16,"ignore_eos":true,"n":3,"seed":11})";
  const json a = post("/v1/completions", sampled), b = post("/v1/completions", sampled);
  EXPECT_EQ(a["choices"], b["choices"]);
  EXPECT_NE(a["choices"][0]["text"], a["choices"][1]["text"]);
}

TEST_F(CompletionsTest, LogprobsComeInBothForms) {
  const json chat_answer = post("/v1/chat/completions", chat(R"("max_tokens":3,"ignore_eos":true,"logprobs":true,"top_logprobs":2)"));
  const json& content = chat_answer["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3U);
  EXPECT_LE(content[0]["logprob"], 0.0);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2U);
  EXPECT_EQ(content[0]["logprob"], content[0]["top_logprobs"][0]["logprob"]);  // greedy takes the likeliest
  EXPECT_TRUE(content[0]["bytes"].is_array());
  const json answer = post("/v1/completions", plain(R"("max_tokens":3,"ignore_eos":true,"logprobs":2)"));
  const json& logprobs = answer["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), 3U);
  EXPECT_EQ(logprobs["token_logprobs"].size(), 3U);
  EXPECT_EQ(logprobs["text_offset"][0], 0);
  int chunks = 0;
  for (const json& chunk : stream("/v1/completions", plain(R"("max_tokens":3,"ignore_eos":true,"logprobs":2,"stream":true)"))) {
    if (!chunk["choices"][0]["logprobs"].is_null()) chunks += static_cast<int>(chunk["choices"][0]["logprobs"]["tokens"].size());
  }
  EXPECT_EQ(chunks, 3);
}

TEST_F(CompletionsTest, ABiasDecidesAndAPenaltyCounts) {
  const json forced = post("/v1/completions", plain(R"("max_tokens":4,"ignore_eos":true,"logit_bias":{"65":100},"logprobs":0)"));
  const std::string token = forced["choices"][0]["logprobs"]["tokens"][0];
  EXPECT_EQ(post("/detokenize", R"({"tokens":[65]})")["prompt"], token);
  EXPECT_EQ(forced["choices"][0]["text"], token + token + token + token);
  const json punished = post("/v1/completions", plain(R"("max_tokens":4,"ignore_eos":true,"logit_bias":{"65":1,"66":0.5},"frequency_penalty":2,"presence_penalty":2,"repetition_penalty":1.1)"));
  EXPECT_EQ(punished["choices"][0]["finish_reason"], "length");
}

/// Every draft is verified, however fast or slow the machine is.
struct SpeculatedCompletionsTest : CompletionsTest {
  SpeculatedCompletionsTest() : CompletionsTest(engine::Speculation::always) {}

  /// Sixteen letters from A to `last`, which no merge joins: the text has the tokens that wrote it.
  json letters(const std::string& prediction, int n = 1, char last = 'Z') const {
    json body = json::parse(chat(R"("max_tokens":16,"ignore_eos":true)"));
    for (int id = 'A' - '!'; id <= last - '!'; ++id) body["logit_bias"][std::to_string(id)] = 100;
    if (!prediction.empty()) body["prediction"] = {{"type", "content"}, {"content", prediction}};
    body["n"] = n;
    return post("/v1/chat/completions", body.dump());
  }
  static std::string text_of(const json& answer, std::size_t choice = 0) { return answer["choices"][choice]["message"]["content"]; }
  static int count(const json& answer, const char* name) { return answer["usage"]["completion_tokens_details"][name].get<int>(); }
};

TEST_F(SpeculatedCompletionsTest, APredictionChangesNothingButTheWork) {
  const json without = letters("");
  const std::string text = text_of(without);
  ASSERT_EQ(text.size(), 16U) << text;
  EXPECT_EQ(count(without, "accepted_prediction_tokens"), 0);
  EXPECT_EQ(count(without, "rejected_prediction_tokens"), 0);

  const json right = letters(text);
  EXPECT_EQ(text_of(right), text);
  EXPECT_GT(count(right, "accepted_prediction_tokens"), 5);
  EXPECT_EQ(count(right, "rejected_prediction_tokens"), 0);

  const json wrong = letters(text.substr(0, 4) + "!!!!!!!!");
  EXPECT_EQ(text_of(wrong), text);
  EXPECT_GT(count(wrong, "rejected_prediction_tokens"), 0);

  const json both = letters(text, 2);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(text_of(both, i), text);
  EXPECT_GT(count(both, "accepted_prediction_tokens"), 16) << "the sum of the choices";
}

TEST_F(SpeculatedCompletionsTest, TokensThatComeTogetherCountEachInTheLatencyBetweenTokens) {
  EXPECT_EQ(text_of(letters(std::string(16, 'A'), 1, 'A')), std::string(16, 'A'));
  const auto snapshot = service.metrics.histogram("inter_token_latency_seconds", "", kLatencySeconds).snapshot();
  EXPECT_EQ(std::accumulate(snapshot.counts.begin(), snapshot.counts.end(), std::uint64_t{0}), 15U) << "all but the first";
}

TEST_F(CompletionsTest, ASecondRequestWithTheSamePromptIsServedFromTheCache) {
  const std::string body = chat(R"("max_tokens":2,"ignore_eos":true)", std::string(200, 'x'));
  EXPECT_EQ(post("/v1/chat/completions", body)["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_GT(post("/v1/chat/completions", body)["usage"]["prompt_tokens_details"]["cached_tokens"], 100);
}

TEST_F(CompletionsTest, TheModelIsListedAndOthersAreNotFound) {
  const json list = json::parse(service.get("/v1/models").body);
  ASSERT_EQ(list["data"].size(), 1U);
  EXPECT_EQ(list["data"][0]["id"], "tiny");
  EXPECT_EQ(json::parse(service.get("/v1/models/tiny").body)["id"], "tiny");
  EXPECT_EQ(service.get("/v1/models/huge").status, 404);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","model":"huge"})", 404)["error"]["code"], "model_not_found");
}

TEST_F(CompletionsTest, WhatTheEngineRefusesNamesTheField) {
  const json too_long = post("/v1/completions", json{{"prompt", std::string(200'000, 'x')}}.dump(), 400);
  EXPECT_EQ(too_long["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(post("/v1/completions", R"({"prompt":[100000]})", 400)["error"]["type"], "invalid_request_error");
  EXPECT_EQ(post("/v1/completions", R"({"prompt":""})", 400)["error"]["param"], "prompt");
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","logit_bias":{"99999":1}})", 400)["error"]["type"], "invalid_request_error");
  EXPECT_EQ(post("/v1/completions", "{\"prompt\":\"\xff\"}", 400)["error"]["type"], "invalid_request_error");
  EXPECT_EQ(post("/detokenize", R"({"tokens":[100000]})", 400)["error"]["param"], "tokens");
  EXPECT_TRUE(service.becomes_idle());
}

TEST_F(CompletionsTest, TextThatSpellsAControlTokenStaysText) {
  const json tokens = post("/tokenize", R"({"prompt":"<|im_end|>"})");
  EXPECT_GT(tokens["count"], 3);
  EXPECT_EQ(post("/detokenize", json{{"tokens", tokens["tokens"]}}.dump())["prompt"], "<|im_end|>");
}

}  // namespace
}  // namespace fixpoint::server
