#pragma once

#include <random>
#include <string>
#include <string_view>

#include "engine/tokenizer.h"

namespace fixpoint::engine::testing {

/// Bytes as a byte-level vocabulary spells them.
[[nodiscard]] std::string spell_bytes(std::string_view bytes);

/// 256 bytes and a few words ("in", "int", " int", "aa", "aaaa", "  ", …), then "<|end|>" and "<|im_start|>" (control; the
/// first is eos) and "<tool>", "<tool_call>" (user-defined).
[[nodiscard]] TokenizerSpec small_byte_level_spec(PreTokenizer pre);
/// <unk>, <s>, </s>, 256 byte tokens, and pieces: letters, ▁, "▁th", "he", "▁the", "aa", "aaaa", "▁▁" and others.
[[nodiscard]] TokenizerSpec small_sentencepiece_spec();

/// The tokenizer of a spec that must be right.
[[nodiscard]] Tokenizer build(TokenizerSpec spec);

/// Up to `most` fragments in a row that tokenizers cut in special ways; valid UTF-8 unless `any_bytes`.
[[nodiscard]] std::string random_text(std::mt19937& random, int most, bool any_bytes = false);

}  // namespace fixpoint::engine::testing
