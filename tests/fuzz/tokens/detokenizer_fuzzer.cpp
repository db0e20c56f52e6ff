// Stop strings, then tokens of any bytes, cut anywhere: the pieces are valid UTF-8 and join to the whole text's decoding up
// to the first stop string.
#include <cstdint>
#include <cstdlib>

#include "engine/utf8.h"
#include "engine/detokenizer.h"
#include "tests/engine/tokens/small_vocabulary.h"

namespace {

using namespace fixpoint::engine;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string before_stop(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (!stop.empty() && std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

/// Every byte string of one to three bytes would be too many tokens: these are single bytes and some words.
const Tokenizer& tokenizer() {
  static const Tokenizer instance = testing::build(testing::small_byte_level_spec(PreTokenizer::gpt2));
  return instance;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t first = std::min<std::size_t>(data[0] % 8, size - 2);
  const std::size_t second = std::min<std::size_t>(data[1] % 8, size - 2 - first);
  std::vector<std::string> stops{std::string(all.substr(2, first)), std::string(all.substr(2 + first, second))};
  const std::string_view bytes = all.substr(2 + first + second);

  Detokenizer detokenizer(tokenizer(), stops);
  std::string joined;
  for (const TokenId token : tokenizer().encode(bytes, Tokenizer::ControlTokens::as_text)) {
    const auto piece = detokenizer.push(token);
    require(as_valid_utf8(piece.text) == piece.text);
    joined += piece.text;
  }
  joined += detokenizer.finish();
  for (std::string& stop : stops) stop = as_valid_utf8(stop);
  require(joined == before_stop(as_valid_utf8(bytes), stops));
  return 0;
}
