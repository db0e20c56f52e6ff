#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "engine/detail/hf_config.h"
#include "engine/detail/json_document.h"
#include "engine/load_error.h"
#include "engine/tokenizer_file.h"

namespace fixpoint::engine::detail {

/// A tokenizer.json's vocabulary and rules, without what its neighbours say.
[[nodiscard]] tl::expected<TokenizerSpec, LoadError> read_tokenizer_json(const Json& tokenizer, const std::string& file);

/// What tokenizer_config.json adds to it: BOS, EOS, the chat template.
void read_tokenizer_config(const Json& config, TokenizerFile& out);
/// What generation_config.json adds: stop tokens.
[[nodiscard]] std::optional<LoadError> read_generation_config(const Json& config, const std::string& file, TokenizerSpec& spec);

/// tokenizer.json of a directory, with the files that may stand beside it: tokenizer_config.json (BOS, EOS, chat template),
/// chat_template.jinja, generation_config.json (stop tokens). `config` is the directory's config.json, or null.
[[nodiscard]] tl::expected<TokenizerFile, LoadError> read_hf_tokenizer(const std::filesystem::path& directory,
                                                                       const HfConfig* config);

}  // namespace fixpoint::engine::detail
