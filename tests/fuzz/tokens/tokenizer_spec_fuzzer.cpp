// Vocabularies made of any bytes: refused, or able to encode and decode.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/tokenizer.h"

namespace {

using namespace fixpoint::engine;

/// Takes values off the front of the input; zeros after its end.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  std::string text(std::size_t most) {
    const std::size_t length = byte() % (most + 1);
    const std::string out(bytes_.substr(0, length));
    bytes_.remove_prefix(out.size());
    return out;
  }
  [[nodiscard]] std::string_view rest() const { return bytes_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

std::optional<TokenId> some_id(Input& input) {
  const std::uint8_t value = input.byte();
  return value == 0 ? std::nullopt : std::optional<TokenId>(value - 2);
}

TokenizerSpec make_spec(Input& input) {
  TokenizerSpec spec;
  const std::uint8_t flags = input.byte();
  spec.kind = (flags & 1U) != 0 ? TokenizerSpec::Kind::sentencepiece_bpe : TokenizerSpec::Kind::byte_level_bpe;
  spec.ignore_merges = (flags & 2U) != 0;
  spec.nfc = (flags & 4U) != 0;
  spec.add_space_prefix = (flags & 8U) != 0;
  spec.space_prefix_once = (flags & 16U) != 0;
  spec.pre = static_cast<PreTokenizer>(input.byte() % 5);
  for (int left = input.byte() % 64; left > 0; --left) {
    spec.tokens.push_back(input.text(9));
    spec.types.push_back(static_cast<TokenType>(1 + input.byte() % 6));
    spec.scores.push_back(static_cast<float>(input.byte() % 16));
  }
  for (int left = input.byte() % 32; left > 0 && !spec.tokens.empty(); --left) {
    const auto pick = [&] { return spec.tokens[input.byte() % spec.tokens.size()]; };
    std::string first = pick();
    spec.merges.emplace_back(std::move(first), pick());
  }
  spec.bos = some_id(input);
  spec.eos = some_id(input);
  spec.unk = some_id(input);
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({reinterpret_cast<const char*>(data), size});
  const auto tokenizer = Tokenizer::build(make_spec(input), "fuzzed");
  if (!tokenizer) return 0;
  for (const auto control : {Tokenizer::ControlTokens::as_text, Tokenizer::ControlTokens::parse}) {
    const auto ids = tokenizer->encode(input.rest(), control);
    for (const TokenId id : ids) {
      if (id < 0 || id >= tokenizer->size()) std::abort();
      if (control == Tokenizer::ControlTokens::as_text && tokenizer->is_control(id)) std::abort();
    }
    static_cast<void>(tokenizer->decode(ids, true));
  }
  return 0;
}
