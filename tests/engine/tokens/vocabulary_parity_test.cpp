// Token ids against those of the original tokenizers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/detail/utf8.h"
#include "tests/engine/tokens/reference_vocabulary.h"

namespace fixpoint::engine {
namespace {

namespace fs = std::filesystem;
using testing::file_contents;
using testing::read_ids;
using testing::reference_tokenizer;

constexpr auto kAsText = Tokenizer::ControlTokens::as_text;

/// The texts of an .inp file, which a line "__ggml_vocab_test__" parts.
std::vector<std::string> read_parted_texts(const fs::path& path) {
  const std::string all = file_contents(path);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  std::size_t from = 0;
  for (std::size_t at = all.find(separator); at != std::string::npos; at = all.find(separator, from)) {
    texts.push_back(all.substr(from, at - from));
    from = at + separator.size();
  }
  return texts;
}

std::vector<std::string> read_corpus() {
  std::istringstream lines(file_contents(fs::path(FIXPOINT_TOKENIZER_GOLDENS) / "corpus.jsonl"));
  std::vector<std::string> texts;
  for (std::string line; std::getline(lines, line);) {
    texts.push_back(nlohmann::json::parse(line).get<std::string>());
  }
  return texts;
}

struct Vocabulary {
  const char* name;
  const char* data_name;  ///< of the .inp and .out files, if there are any

};

std::string test_name(const ::testing::TestParamInfo<Vocabulary>& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
}

class VocabularyParityTest : public ::testing::TestWithParam<Vocabulary> {};

TEST_P(VocabularyParityTest, IdsEqualThoseThatComeWithTheVocabulary) {
  if (GetParam().data_name == nullptr) GTEST_SKIP() << "no ids come with this vocabulary";
  const fs::path stem = fs::path(FIXPOINT_BENCHMARK_DATA) / "vocab" / ("ggml-vocab-" + std::string(GetParam().data_name));
  if (!fs::exists(stem.string() + ".gguf.inp")) GTEST_SKIP() << stem << ".gguf.inp is not here";
  const auto tokenizer = reference_tokenizer(GetParam().name);
  if (!tokenizer) GTEST_SKIP() << tokenizer.error();
  const auto texts = read_parted_texts(stem.string() + ".gguf.inp");
  const auto ids = read_ids(stem.string() + ".gguf.out");
  ASSERT_GT(texts.size(), 40U);
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer->encode(texts[i], kAsText), ids[i]) << "case " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer->decode(ids[i]), texts[i]) << "case " << i;
  }
}

TEST_P(VocabularyParityTest, IdsOfTheCorpusEqualTheReference) {
  const auto tokenizer = reference_tokenizer(GetParam().name);
  if (!tokenizer) GTEST_SKIP() << tokenizer.error();
  const auto texts = read_corpus();
  const auto ids = read_ids(fs::path(FIXPOINT_TOKENIZER_GOLDENS) / (std::string(GetParam().name) + ".ids"));
  ASSERT_GT(texts.size(), 500U);
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer->encode(texts[i], kAsText), ids[i]) << "line " << i + 1 << ": " << texts[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Files, VocabularyParityTest,
                         ::testing::Values(Vocabulary{"gpt-2", "gpt-2"}, Vocabulary{"deepseek-coder", "deepseek-coder"},
                                           Vocabulary{"deepseek-llm", "deepseek-llm"},
                                           Vocabulary{"llama-spm", "llama-spm"}, Vocabulary{"qwen3", "qwen2"},
                                           Vocabulary{"llama3", "llama-bpe"}, Vocabulary{"mistral", nullptr}),
                         test_name);

}  // namespace
}  // namespace fixpoint::engine
