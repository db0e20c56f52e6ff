#include "server/openai.h"

#include <gtest/gtest.h>

namespace fixpoint::server {
namespace {

std::string chat(const std::string& more) { return R"({"messages":[{"role":"user","content":"hi"}])" + (more.empty() ? "" : "," + more) + "}"; }
std::string plain(const std::string& more) { return R"({"prompt":"hi")" + (more.empty() ? "" : "," + more) + "}"; }

std::string nested(int depth) {
  std::string out = R"({"messages":)";
  for (int i = 0; i < depth; ++i) out += "[";
  for (int i = 0; i < depth; ++i) out += "]";
  return out + "}";
}

TEST(OpenAiTest, AChatCallIsReadWithAllItsFields) {
  const auto call = parse_chat_call(R"({
    "model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "content": "u"}, {"role": "assistant", "content": "x"}],
    "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.5,
    "logit_bias": {"5": -100, "6": 3.5}, "seed": -3, "stop": ["a", "b"], "stop_token_ids": [1, 2], "n": 3, "max_completion_tokens": 9,
    "min_tokens": 2, "logprobs": true, "top_logprobs": 4, "stream": true, "stream_options": {"include_usage": true}, "ignore_eos": true,
    "prediction": {"type": "content", "content": "def f"}, "user": "somebody", "tools": [], "response_format": {"type": "text"}})");
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_TRUE(call->chat);
  EXPECT_EQ(call->model, "m");
  ASSERT_EQ(call->messages.size(), 4U);
  EXPECT_EQ(call->messages[1].role, engine::Role::system);
  EXPECT_EQ(call->messages[1].content, "ab");
  EXPECT_EQ(call->messages[3].role, engine::Role::assistant);
  EXPECT_FLOAT_EQ(call->sampling.temperature, 0.5F);
  EXPECT_EQ(call->sampling.top_k, 7);
  EXPECT_FLOAT_EQ(call->sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(call->sampling.logit_bias, (std::vector<std::pair<engine::TokenId, float>>{{5, -100.0F}, {6, 3.5F}}));
  EXPECT_EQ(call->sampling.seed, static_cast<std::uint64_t>(-3));
  EXPECT_EQ(call->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(call->stop_tokens, (std::vector<engine::TokenId>{1, 2}));
  EXPECT_EQ(call->n, 3);
  EXPECT_EQ(call->max_tokens, 9);
  EXPECT_EQ(call->min_tokens, 2);
  EXPECT_TRUE(call->sampling.logprobs);
  EXPECT_EQ(call->sampling.top_logprobs, 4);
  EXPECT_TRUE(call->stream && call->include_usage && call->ignore_eos);
  EXPECT_EQ(call->prediction, "def f");
}

TEST(OpenAiTest, NullMeansAbsent) {
  const auto call = parse_chat_call(chat(R"("temperature":null,"stop":null,"max_tokens":null,"seed":null,"n":null,"logit_bias":null,"stream_options":null)"));
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_FALSE(call->max_tokens.has_value());
  EXPECT_EQ(call->n, 1);
}

TEST(OpenAiTest, PromptsComeInFourForms) {
  EXPECT_EQ(parse_completion_call(R"({"prompt":"a"})")->prompts, (std::vector<Prompt>{"a"}));
  EXPECT_EQ(parse_completion_call(R"({"prompt":["a","b"]})")->prompts, (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(parse_completion_call(R"({"prompt":[1,2]})")->prompts, (std::vector<Prompt>{std::vector<engine::TokenId>{1, 2}}));
  EXPECT_EQ(parse_completion_call(R"({"prompt":[[1],[2,3]]})")->prompts,
            (std::vector<Prompt>{std::vector<engine::TokenId>{1}, std::vector<engine::TokenId>{2, 3}}));
  EXPECT_EQ(parse_completion_call(R"({"prompt":"a"})")->max_tokens, 16);
  EXPECT_EQ(parse_completion_call(R"({"prompt":"a","logprobs":0})")->sampling.logprobs, true);
}

struct Fault {
  std::string body;
  std::string param;
};

TEST(OpenAiTest, FaultsInChatCallsNameTheField) {
  const std::vector<Fault> faults{
      {"", ""}, {"[]", ""}, {"{", ""}, {"nul", ""}, {"\xff\xfe", ""}, {"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", ""}, {nested(40), ""}, {nested(20), "messages[0]"},
      {"{}", "messages"}, {R"({"messages":{}})", "messages"}, {R"({"messages":[]})", "messages"}, {R"({"messages":["x"]})", "messages[0]"},
      {R"({"messages":[{"role":"user"}]})", "messages[0]"}, {R"({"messages":[{"role":"tool","content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user","content":7}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", "messages[0].content[0]"},
      {chat(R"("temperature":"x")"), "temperature"}, {chat(R"("temperature":-1)"), "temperature"}, {chat(R"("temperature":3)"), "temperature"},
      {chat(R"("top_p":2)"), "top_p"}, {chat(R"("n":0)"), "n"}, {chat(R"("n":1.5)"), "n"}, {chat(R"("n":100000)"), "n"},
      {chat(R"("max_tokens":0)"), "max_tokens"}, {chat(R"("max_tokens":99999999999999999999)"), "max_tokens"}, {chat(R"("seed":"1")"), "seed"},
      {chat(R"("stop":[1])"), "stop"}, {chat(R"("stop":"")"), "stop"}, {chat(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])"), "stop"},
      {chat(R"("logit_bias":{"x":1})"), "logit_bias"}, {chat(R"("logit_bias":{"1":101})"), "logit_bias"}, {chat(R"("logit_bias":[])"), "logit_bias"},
      {chat(R"("stream":1)"), "stream"}, {chat(R"("stream_options":1)"), "stream_options"}, {chat(R"("top_logprobs":2)"), "top_logprobs"},
      {chat(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs"}, {chat(R"("tools":[{}])"), "tools"},
      {chat(R"("response_format":{"type":"json_object"})"), "response_format"}, {chat(R"("prediction":"x")"), "prediction"},
      {chat(R"("stop_token_ids":[-1])"), "stop_token_ids"}, {chat(R"("priority":1000)"), "priority"}};
  for (const Fault& fault : faults) {
    const auto call = parse_chat_call(fault.body);
    ASSERT_FALSE(call.has_value()) << fault.body;
    EXPECT_EQ(call.error().status, 400) << fault.body;
    EXPECT_EQ(call.error().param, fault.param) << fault.body << ": " << call.error().message;
  }
}

TEST(OpenAiTest, FaultsInCompletionCallsNameTheField) {
  const std::vector<Fault> faults{{"{}", "prompt"}, {R"({"prompt":[]})", "prompt"}, {R"({"prompt":7})", "prompt"}, {R"({"prompt":[1,"a"]})", "prompt"},
                                  {R"({"prompt":["a",7]})", "prompt[1]"}, {R"({"prompt":[-1]})", "prompt"}, {R"({"prompt":[1e300]})", "prompt"},
                                  {plain(R"("logprobs":true)"), "logprobs"}, {plain(R"("echo":true,"logprobs":1)"), "echo"},
                                  {plain(R"("suffix":"x")"), "suffix"}, {plain(R"("best_of":3)"), "best_of"}, {R"({"prompt":["a","b"],"n":100})", "n"}};
  for (const Fault& fault : faults) {
    const auto call = parse_completion_call(fault.body);
    ASSERT_FALSE(call.has_value()) << fault.body;
    EXPECT_EQ(call.error().param, fault.param) << fault.body << ": " << call.error().message;
  }
}

TEST(OpenAiTest, TokenListsAreChecked) {
  EXPECT_EQ(*parse_detokenize_call(R"({"tokens":[1,2]})"), (std::vector<engine::TokenId>{1, 2}));
  EXPECT_FALSE(parse_detokenize_call(R"({"tokens":["a"]})").has_value());
  EXPECT_FALSE(parse_detokenize_call(R"({})").has_value());
  EXPECT_EQ(std::get<std::string>(parse_tokenize_call(R"({"prompt":"x"})")->text), "x");
  EXPECT_FALSE(parse_tokenize_call(R"({"text":"x"})").has_value());
}

}  // namespace
}  // namespace fixpoint::server
