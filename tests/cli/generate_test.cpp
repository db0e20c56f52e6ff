#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace fixpoint::cli_tests {
namespace {

using ::testing::HasSubstr;
using nlohmann::json;

using GenerateTest = ProgramTest;

TEST_F(GenerateTest, JsonHasEveryKeyAScriptReads) {
  const Ran ran = with_model({"generate", "-p", "return the", "-n", "6", "--ignore-eos", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json result = ran.json();
  ASSERT_TRUE(result.is_object()) << ran.out;
  for (const char* key : {"text", "tokens", "prompt_tokens", "finish_reason", "stop", "cached_tokens", "model", "backend", "timings"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(result["tokens"].size(), 6U);
  EXPECT_GE(result["prompt_tokens"].size(), 2U);
  EXPECT_EQ(result["finish_reason"], "length");
  EXPECT_EQ(result["cached_tokens"], 0);
  for (const char* key : {"load_ms", "queued_ms", "first_token_ms", "total_ms", "prefill_tokens_per_s", "decode_tokens_per_s"}) {
    EXPECT_TRUE(result["timings"][key].is_number()) << key;
  }
}

TEST_F(GenerateTest, TheStreamedTextIsTheTextOfTheJson) {
  const std::vector<std::string> words{"generate", "-p", "if x:", "-n", "12", "--seed", "5", "--temp", "0.8"};
  auto as_json = words;
  as_json.push_back("--json");
  const Ran streamed = with_model(words);
  const Ran whole = with_model(as_json);
  ASSERT_EQ(streamed.code, 0) << streamed.err;
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(streamed.out, whole.json()["text"].get<std::string>() + "\n");
}

TEST_F(GenerateTest, ASeedGivesTheSameTokensAndAnotherSeedOthers) {
  const auto tokens = [&](const std::string& seed) {
    return with_model({"generate", "-p", "x", "-n", "24", "--seed", seed, "--temp", "1", "--ignore-eos", "--json"}).json()["tokens"];
  };
  const json first = tokens("18446744073709551615");
  ASSERT_EQ(first.size(), 24U);
  EXPECT_EQ(tokens("18446744073709551615"), first);
  EXPECT_NE(tokens("2"), first);
  EXPECT_EQ(tokens("010"), tokens("10")) << "decimal digits";
}

TEST_F(GenerateTest, ChatPutsThePromptIntoTheModelsFormat) {
  const auto prompt = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"generate", "-p", "<|im_end|>hi", "-n", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = with_model(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.json()["prompt_tokens"].get<std::vector<int>>();
  };
  // The tiny model's vocabulary ends with <|endoftext|>, <|im_start|>, <|im_end|>.
  constexpr int kStart = 382, kEnd = 383;
  const auto count = [](const std::vector<int>& tokens, int token) { return std::count(tokens.begin(), tokens.end(), token); };
  const auto plain = prompt({});
  EXPECT_EQ(count(plain, kStart) + count(plain, kEnd), 0) << "text is text";
  EXPECT_EQ(count(prompt({"--special"}), kEnd), 1);
  const auto user = prompt({"--chat"});
  EXPECT_EQ(user.front(), kStart);
  const auto with_system = prompt({"--chat", "--system", "Be brief."});
  EXPECT_EQ(count(with_system, kStart), 3) << "system, user, assistant";
  EXPECT_EQ(count(with_system, kEnd), 2) << "the prompt's own is text";
}

TEST_F(GenerateTest, AKeptFileOfWeightsGivesTheSameText) {
  const auto generate = [&](const std::string& option) {
    std::vector<std::string> words{"generate"};
    if (!option.empty()) words.push_back(option);
    words.insert(words.end(), {"-p", "if x:", "-n", "12", "--ignore-eos"});
    return with_model(words);
  };
  const auto kept = [](const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".weights") names.push_back(entry.path().filename().string());
    }
    return names;
  };
  const std::filesystem::path own = std::filesystem::path(model()).parent_path();
  const Ran plain = generate("");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(kept(own).empty());
  const auto folder = file("elsewhere");
  std::filesystem::create_directory(folder);
  for (const std::string& option : {std::string("--weight-cache"), "--weight-cache=" + folder.string()}) {
    for (int run = 0; run < 2; ++run) {
      const Ran with = generate(option);
      EXPECT_EQ(with.code, 0);
      EXPECT_EQ(with.err, plain.err) << option;
      EXPECT_EQ(with.out, plain.out) << option;
    }
  }
  EXPECT_EQ(kept(own).size(), 1U);
  EXPECT_EQ(kept(folder).size(), 1U);
}

TEST_F(GenerateTest, AFileOfWeightsThatCannotBeKeptIsOneWarning) {
  const std::string nowhere = file("nowhere").string();
  const Ran ran = with_model({"generate", "--weight-cache=" + nowhere, "-p", "x", "-n", "2"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, ::testing::AllOf(HasSubstr("--weight-cache"), HasSubstr(nowhere)));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST_F(GenerateTest, APromptOverTheContextSaysHowLongBothAre) {
  write(file("prompt"), std::string(4000, '\x01'));
  const Ran ran = with_model({"generate", "-f", file("prompt").string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, ::testing::AllOf(HasSubstr("4000"), HasSubstr("512")));
}

TEST_F(GenerateTest, BenchMeasuresTheRowsThatWereAskedFor) {
  const std::vector<std::string> words{"bench", "--prefill", "32", "--decode", "8", "--batch", "2", "--batch-prompt", "8", "--batch-decode", "4", "--repeat", "1"};
  auto as_json = words;
  as_json.push_back("--json");
  const Ran ran = with_model(as_json);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json result = ran.json();
  ASSERT_EQ(result["rows"].size(), 3U) << ran.out;
  for (const auto& row : result["rows"]) {
    EXPECT_GT(row["tokens_per_s"].get<double>(), 0.0) << row;
    EXPECT_GT(row["limit_tokens_per_s"].get<double>(), 0.0) << row;
    EXPECT_EQ(row["runs"].size(), 1U);
  }
  EXPECT_EQ(result["rows"][0]["name"], "prefill 32");
  EXPECT_GT(result["read_bytes_per_s"].get<double>(), 0.0);
  const Ran text = with_model(words);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, ::testing::AllOf(HasSubstr("prefill 32"), HasSubstr("decode x2"), HasSubstr("of limit"), ::testing::Not(HasSubstr("nan"))));
}

}  // namespace
}  // namespace fixpoint::cli_tests
