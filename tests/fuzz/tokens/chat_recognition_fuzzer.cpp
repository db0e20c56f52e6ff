// Any text as a chat template, and any text as a conversation.
#include <array>
#include <cstdint>
#include <cstdlib>

#include "engine/chat_template.h"
#include "tests/engine/tokens/small_vocabulary.h"

namespace {

using namespace fixpoint::engine;

Tokenizer make_tokenizer() {
  TokenizerSpec spec = testing::small_byte_level_spec(PreTokenizer::llama3);
  spec.bos = spec.eos;
  for (const char* marker : {"<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|EOT|>", "[INST]", "[/INST]"}) {
    spec.tokens.emplace_back(marker);
    spec.types.push_back(TokenType::control);
  }
  return testing::build(std::move(spec));
}

std::size_t controls(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::size_t count = 0;
  for (const TokenId id : ids) count += tokenizer.is_control(id) ? 1U : 0U;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer tokenizer = make_tokenizer();
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(recognise_chat_format(text));
  std::array messages{Message{Role::system, text}, Message{Role::user, text}, Message{Role::assistant, text}};
  std::array plain{Message{Role::system, "a"}, Message{Role::user, "a"}, Message{Role::assistant, "a"}};
  for (const ChatFormat format : {ChatFormat::chatml, ChatFormat::llama2, ChatFormat::llama3, ChatFormat::mistral,
                                  ChatFormat::deepseek_coder}) {
    const auto ids = render_chat(format, tokenizer, messages);
    const auto reference = render_chat(format, tokenizer, plain);
    if (!ids || !reference || controls(tokenizer, *ids) != controls(tokenizer, *reference)) std::abort();
  }
  return 0;
}
