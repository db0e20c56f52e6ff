#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "engine/load_error.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine {

/// What a file says about text.
struct TokenizerFile {
  TokenizerSpec spec;
  std::optional<std::string> chat_template;  ///< Jinja text
  /// fixpoint.program_start_given: the model was trained to be given the first words of a program, "def NAME".
  bool program_start_given = false;
};

/// Reads only the tokenizer: of a GGUF file (one without tensors too), of a tokenizer.json, or of a directory that holds one.
[[nodiscard]] tl::expected<TokenizerFile, LoadError> read_tokenizer(const std::filesystem::path& path);

}  // namespace fixpoint::engine
