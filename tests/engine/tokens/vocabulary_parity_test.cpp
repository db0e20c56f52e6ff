// Token ids against those of the original tokenizers, on the vocabulary files of ../shared/data/vocab.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "engine/tokenizer.h"
#include "engine/tokenizer_file.h"

namespace fixpoint::engine {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The texts of an .inp file, which a line "__ggml_vocab_test__" parts.
std::vector<std::string> read_texts(const fs::path& path) {
  const std::string all = contents(path);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  std::size_t from = 0;
  for (std::size_t at = all.find(separator); at != std::string::npos; at = all.find(separator, from)) {
    texts.push_back(all.substr(from, at - from));
    from = at + separator.size();
  }
  return texts;
}

std::vector<std::vector<TokenId>> read_ids(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::vector<TokenId>> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    out.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return out;
}

class VocabularyParityTest : public testing::TestWithParam<const char*> {};

TEST_P(VocabularyParityTest, IdsEqualTheOriginals) {
  const fs::path stem = fs::path(FIXPOINT_BENCHMARK_DATA) / "vocab" / ("ggml-vocab-" + std::string(GetParam()) + ".gguf");
  if (!fs::exists(stem)) {
    GTEST_SKIP() << stem << " is not here";
  }
  auto file = read_tokenizer(stem);
  ASSERT_TRUE(file) << file.error().message();
  const auto tokenizer = Tokenizer::build(std::move(file->spec), stem.string());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  const auto texts = read_texts(stem.string() + ".inp");
  const auto ids = read_ids(stem.string() + ".out");
  ASSERT_GT(texts.size(), 40U);
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer->encode(texts[i], Tokenizer::ControlTokens::as_text), ids[i]) << "case " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer->decode(ids[i]), texts[i]) << "case " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, VocabularyParityTest, testing::Values("deepseek-coder", "deepseek-llm", "gpt-2", "llama-spm"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fixpoint::engine
