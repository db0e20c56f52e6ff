#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fixpoint::engine {

using TokenId = std::int32_t;

/// ▁, as which the pieces of SentencePiece write a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// What a token is for; the values are GGUF's token types.
enum class TokenType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// How byte-level BPE cuts text before merging. Named after the models that use the pattern.
enum class PreTokenizer : std::uint8_t { gpt2, llama3, qwen2, deepseek_coder, deepseek_llm };

/// A vocabulary and its rules, as read from GGUF metadata or from tokenizer.json; plain data, not yet checked.
struct TokenizerSpec {
  enum class Kind : std::uint8_t { byte_level_bpe, sentencepiece_bpe };

  Kind kind = Kind::byte_level_bpe;
  PreTokenizer pre = PreTokenizer::gpt2;           ///< byte_level_bpe
  std::vector<std::string> tokens;                 ///< as written in the file (GPT-2 printable bytes, or ▁ pieces)
  std::vector<TokenType> types;                    ///< same size as tokens
  std::vector<float> scores;                       ///< sentencepiece_bpe, same size as tokens; tokenizer.json has merges
                                                   ///< instead: minus the index of the first one that makes the piece
  std::vector<std::pair<std::string, std::string>> merges;  ///< byte_level_bpe, best first
  bool ignore_merges = false;                      ///< a whole word in the vocabulary is used as it is (Llama-3)
  bool nfc = false;                                ///< normalise to NFC first (Qwen2)
  bool add_bos = false;
  bool add_space_prefix = false;                   ///< sentencepiece_bpe: text is read as if a space stood before it
  bool space_prefix_once = false;                  ///< only at the start of a text (tokenizer.json: Metaspace "first"),
                                                   ///< not after each control token too (GGUF; Prepend or "always")
  std::optional<TokenId> bos, eos, eot, unk;
  std::vector<TokenId> stop_tokens;                ///< every token that ends a turn (eos, eot, lists in generation_config.json)
};

}  // namespace fixpoint::engine
