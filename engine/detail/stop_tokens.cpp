#include "engine/detail/stop_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace fixpoint::engine::detail {
namespace {

constexpr std::array<std::string_view, 9> kTurnEnds{
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>",         "<|eom_id|>", "<|end_of_text|>",
    "<|EOT|>",    "<|end|>",       "<｜end▁of▁sentence｜>", "</s>"};

void add(std::vector<TokenId>& ids, TokenId id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

}  // namespace

void add_stop_tokens(TokenizerSpec& spec) {
  if (spec.eos) add(spec.stop_tokens, *spec.eos);
  if (spec.eot) add(spec.stop_tokens, *spec.eot);
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    // Some converters mark added tokens that the tokenizer does not call special as user-defined.
    if (spec.types[i] != TokenType::control && spec.types[i] != TokenType::user_defined) continue;
    if (std::find(kTurnEnds.begin(), kTurnEnds.end(), spec.tokens[i]) != kTurnEnds.end()) {
      add(spec.stop_tokens, static_cast<TokenId>(i));
    }
  }
}

}  // namespace fixpoint::engine::detail
