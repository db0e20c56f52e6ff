// Any bytes, with every kind of tokenizer: ids in range, no control token out of text, and the text back.
#include <array>
#include <cstdint>
#include <cstdlib>

#include "engine/detail/normalise.h"
#include "tests/engine/tokens/small_vocabulary.h"

namespace {

using namespace fixpoint::engine;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<Tokenizer> make_tokenizers() {
  std::vector<Tokenizer> out;
  for (const PreTokenizer pre : {PreTokenizer::gpt2, PreTokenizer::llama3, PreTokenizer::qwen2, PreTokenizer::deepseek_coder,
                                 PreTokenizer::deepseek_llm}) {
    out.push_back(testing::build(testing::small_byte_level_spec(pre)));
  }
  out.push_back(testing::build(testing::small_sentencepiece_spec()));
  return out;
}

void check(const Tokenizer& tokenizer, std::string_view text) {
  using enum Tokenizer::ControlTokens;
  const auto ids = tokenizer.encode(text, as_text);
  for (const TokenId id : ids) require(id >= 0 && id < tokenizer.size() && !tokenizer.is_control(id));
  for (const TokenId id : tokenizer.encode_after_control(text)) require(!tokenizer.is_control(id));
  if (tokenizer.spec().kind == TokenizerSpec::Kind::byte_level_bpe) {
    require(tokenizer.decode(ids) == text);
    require(tokenizer.decode(tokenizer.encode(text, parse), true) == text);
  } else if (text.find("▁") == std::string_view::npos && text.find("<tool>") == std::string_view::npos) {
    require(tokenizer.decode(ids) == text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Tokenizer> tokenizers = make_tokenizers();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Tokenizer& tokenizer : tokenizers) check(tokenizer, text);
  std::string once;
  const std::string normal(detail::to_nfc(text, once));
  std::string twice;
  require(detail::to_nfc(normal, twice) == normal);
  return 0;
}
