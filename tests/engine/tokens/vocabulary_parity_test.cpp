// Token ids against those of the original tokenizers.
#include <gtest/gtest.h>

#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/utf8.h"
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

std::vector<std::string> read_corpus(const char* name) {
  std::istringstream lines(file_contents(fs::path(FIXPOINT_TOKENIZER_GOLDENS) / name));
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
  const auto texts = read_corpus("corpus.jsonl");
  const auto ids = read_ids(fs::path(FIXPOINT_TOKENIZER_GOLDENS) / (std::string(GetParam().name) + ".ids"));
  ASSERT_GT(texts.size(), 500U);
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer->encode(texts[i], kAsText), ids[i]) << "line " << i + 1 << ": " << texts[i];
  }
}

/// FNV-1a of 64 bits over the ids, each as four bytes, the lowest first, as the goldens have it.
std::string digest(const std::vector<TokenId>& ids) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ ((static_cast<std::uint32_t>(id) >> shift) & 255)) * 0x100000001b3;
  }
  std::ostringstream text;
  text << ids.size() << ' ' << std::hex << std::setfill('0') << std::setw(16) << hash;
  return text.str();
}

TEST_P(VocabularyParityTest, DigestsOfLongTextsEqualTheReference) {
  const auto tokenizer = reference_tokenizer(GetParam().name);
  if (!tokenizer) GTEST_SKIP() << tokenizer.error();
  const auto texts = read_corpus("long.jsonl");
  std::istringstream digests(file_contents(fs::path(FIXPOINT_TOKENIZER_GOLDENS) / (std::string(GetParam().name) + ".long")));
  ASSERT_GT(texts.size(), 200U);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string expected;
    ASSERT_TRUE(std::getline(digests, expected)) << "line " << i + 1;
    EXPECT_EQ(digest(tokenizer->encode(texts[i], kAsText)), expected) << "line " << i + 1 << ": " << texts[i];
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
