#include <gmock/gmock.h>

#include <array>
#include <string>
#include <string_view>

#include "tests/cli/program.h"

namespace fixpoint::cli_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using nlohmann::json;

using ModelInfoTest = ProgramTest;

TEST_F(ModelInfoTest, JsonTellsShapesTypesUsersAndLimits) {
  const Ran ran = run({"model", "info", model(), "--memory", "1G", "--threads", "1", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json info = ran.json();
  ASSERT_TRUE(info.is_object()) << ran.out;
  EXPECT_EQ(info["format"], "GGUF v3");
  EXPECT_EQ(info["config"]["architecture"], "llama");
  EXPECT_EQ(info["config"]["layers"], 2);
  EXPECT_EQ(info["config"]["vocab_size"], 384);
  EXPECT_EQ(info["memory_bytes"], 1 << 30);
  EXPECT_EQ(info["file_bytes"], std::filesystem::file_size(model()));
  EXPECT_TRUE(info["types"].contains("F32"));
  ASSERT_EQ(info["kv"].size(), 6U);
  EXPECT_EQ(info["kv"][1]["bytes_per_token"], 2 * 2 * 2 * 16 * 2) << "keys and values, layers, KV heads, their size, F16";
  const double whole_context = static_cast<double>(info["config"]["context_length"].get<int>() * info["kv"][1]["bytes_per_token"].get<int>());
  EXPECT_DOUBLE_EQ(info["kv"][1]["users_per_gib"].get<double>(), 0x1p30 / whole_context);
  for (const char* context : {"2048", "4096", "32768"}) EXPECT_GT(info["kv"][1]["users"][context].get<long long>(), 0) << context;
  for (const char* phase : {"prefill", "decode"}) {
    for (const char* key : {"flops_per_token", "bytes_per_token", "limit_tokens_per_s"}) {
      EXPECT_GT(info[phase][key].get<double>(), 0.0) << phase << " " << key;
    }
  }
}

TEST_F(ModelInfoTest, TextSaysTheSameForAPerson) {
  const Ran ran = run({"model", "info", model(), "--memory", "1G", "--threads", "1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("llama, 2 layers"), HasSubstr("1.0 GiB"), HasSubstr("INT4"), HasSubstr("This machine: reads"), HasSubstr("prefill")));
}

TEST_F(ModelInfoTest, AFolderOfShardsIsAModelToo) {
  const auto folder = file("folder");
  test_models::write_random_model(folder, {.arch = engine::Architecture::qwen3, .format = test_models::ModelFormat::safetensors, .shards = 2});
  const Ran ran = run({"model", "info", folder.string(), "--memory", "1G", "--threads", "1", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["format"], "safetensors, 2 shards");
  EXPECT_EQ(ran.json()["config"]["architecture"], "qwen3");
}

TEST_F(ModelInfoTest, CompareKvTellsWhatEachTypeChangesAndFailsAboveTheGate) {
  const std::string text = file("text.txt").string();
  write(text, "the sum of the list, and the product of the list; the words of the text in order, and again in order");
  const Ran ran = run({"model", "compare-kv", model(), text, "--window", "16", "--compared", "4", "--threads", "1", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json compared = ran.json();
  EXPECT_EQ(compared["baseline"], "F16");
  EXPECT_EQ(compared["window"], 16);
  EXPECT_EQ(compared["compared"], 4);
  ASSERT_EQ(compared["types"].size(), 5U);
  for (const auto& row : compared["types"]) {
    EXPECT_GE(row["positions"].get<int>(), 4);
    EXPECT_GE(row["same_first_token"].get<double>(), 0.0);
    if (row["type"] == "INT4") {
      EXPECT_GT(row["mean_divergence"].get<double>(), 0.0);
    }
  }
  const Ran gated = run({"model", "compare-kv", model(), text, "--window", "16", "--threads", "1", "--gate", "1e-12"});
  EXPECT_EQ(gated.code, 1);
  EXPECT_THAT(gated.out, AllOf(HasSubstr("FP8"), HasSubstr("same first"), HasSubstr("the last 16 of each 16 tokens; the text has ")));
  EXPECT_THAT(gated.err, AllOf(HasSubstr("above the gate"), HasSubstr("INT4")));
  EXPECT_EQ(run({"model", "compare-kv", model(), file("none.txt").string()}).code, 1);
}

// The figures are of the weights; only running the model needs its tokenizer.
TEST_F(ModelInfoTest, AnUnsupportedTokenizerIsSaidBesideTheFigures) {
  const std::string file_name = file("other.gguf").string();
  for (const auto& [from, to, what] : {std::array{"qwen2", "qwen9", "tokenizer.ggml.pre"}, {"gpt2", "t5xx", "tokenizer.ggml.model"}}) {
    std::string bytes = content_of(model());
    const auto key = bytes.find(what);
    ASSERT_NE(key, std::string::npos);
    bytes.replace(bytes.find(from, key), std::string_view(from).size(), to);
    write(file_name, bytes);
    const Ran shown = run({"model", "info", file_name, "--memory", "1G", "--threads", "1", "--json"});
    ASSERT_EQ(shown.code, 0) << shown.err;
    EXPECT_EQ(shown.json()["config"]["layers"], 2);
    EXPECT_EQ(shown.json()["tokenizer"]["supported"], false);
    EXPECT_THAT(shown.json()["tokenizer"]["reason"].get<std::string>(), AllOf(HasSubstr(what), HasSubstr(to)));
    EXPECT_THAT(run({"model", "info", file_name, "--threads", "1"}).out, AllOf(HasSubstr("2 layers"), HasSubstr("not supported")));
    const Ran refused = run({"generate", "-m", file_name, "-p", "x"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr(what));
  }
}

}  // namespace
}  // namespace fixpoint::cli_tests
