#pragma once

#include <optional>
#include <string>

#include "engine/detail/json_document.h"
#include "engine/load_error.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Fills tokens, types, merges, unk and (SentencePiece) scores from a tokenizer.json's `model` and `added_tokens`;
/// `spec.kind` says which kind of BPE it is.
[[nodiscard]] std::optional<LoadError> read_hf_vocabulary(const Json& tokenizer, const std::string& file, TokenizerSpec& spec);

}  // namespace fixpoint::engine::detail
