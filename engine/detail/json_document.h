#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "engine/load_error.h"

namespace fixpoint::engine::detail {

using Json = nlohmann::json;

/// No real config.json, tokenizer_config.json or generation_config.json comes near it.
inline constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;

enum class DuplicateKeys : bool { last_counts, refuse };

/// Parses a JSON text; an error names the offset. `refuse` is about the keys of the outermost object.
[[nodiscard]] tl::expected<Json, LoadError> parse_json(std::span<const std::byte> text, const std::string& file,
                                                       DuplicateKeys duplicates = DuplicateKeys::last_counts);

/// A file that holds one JSON object, of at most `most_bytes`.
[[nodiscard]] tl::expected<Json, LoadError> read_json_object(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace fixpoint::engine::detail
