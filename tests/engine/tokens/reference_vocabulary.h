#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer.h"

namespace fixpoint::engine::testing {

/// A public vocabulary that tests compare ids on: one of ../shared/data/vocab ("gpt-2", "deepseek-coder", "deepseek-llm",
/// "llama-spm"), or one that scripts/fetch_tokenizer brings ("qwen3", "llama3").
/// Error: why it is not here, in words; the test then skips.
[[nodiscard]] tl::expected<Tokenizer, std::string> reference_tokenizer(const std::string& name);

[[nodiscard]] std::string file_contents(const std::filesystem::path& path);
/// A line of ids each.
[[nodiscard]] std::vector<std::vector<TokenId>> read_ids(const std::filesystem::path& path);

}  // namespace fixpoint::engine::testing
