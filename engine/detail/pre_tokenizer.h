#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Cuts `text` into the words that byte-level BPE merges within, as the models' regular expressions do, in one linear
/// pass each. `ends` receives the end offset of every word, in order; they cover the text. Bytes that are not UTF-8
/// count as characters that are neither letter, number nor whitespace.
/// Precondition: text.size() < 2^32.
void pre_tokenize(PreTokenizer kind, std::string_view text, std::vector<std::uint32_t>& ends);

}  // namespace fixpoint::engine::detail
