#pragma once

#include <cstdint>

#include "engine/tokenizer_spec.h"

namespace fixpoint::test_models {

/// A byte-level BPE vocabulary of `size` tokens: the 256 bytes, merges, fillers " w0", " w1", …, and last <|endoftext|>,
/// <|im_start|>, <|im_end|>.
[[nodiscard]] engine::TokenizerSpec byte_level_vocabulary(std::int64_t size);

/// A SentencePiece vocabulary of `size` tokens: <unk>, <s>, </s>, the 256 bytes, and pieces with scores.
[[nodiscard]] engine::TokenizerSpec sentencepiece_vocabulary(std::int64_t size);

inline constexpr const char* kChatMlTemplate =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

}  // namespace fixpoint::test_models
