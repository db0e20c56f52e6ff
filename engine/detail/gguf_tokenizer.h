#pragma once

#include <string>
#include <tl/expected.hpp>

#include "engine/detail/gguf.h"
#include "engine/load_error.h"
#include "engine/tokenizer_file.h"

namespace fixpoint::engine::detail {

/// Vocabulary, rules and chat template from the metadata keys tokenizer.*.
[[nodiscard]] tl::expected<TokenizerFile, LoadError> read_gguf_tokenizer(const Gguf& gguf, const std::string& file);

}  // namespace fixpoint::engine::detail
