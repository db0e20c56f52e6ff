#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "engine/detail/json_document.h"
#include "engine/load_error.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Which of the known pre-tokenizers a tokenizer.json's `pre_tokenizer` describes, told by its exact patterns; nullopt where
/// it is not byte-level at all. One that is byte-level but unknown is an error that shows its first pattern.
[[nodiscard]] tl::expected<std::optional<PreTokenizer>, LoadError> recognise_pre_tokenizer(const Json& pre_tokenizer,
                                                                                           const std::string& file);

}  // namespace fixpoint::engine::detail
