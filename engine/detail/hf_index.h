#pragma once

#include <set>
#include <string>
#include <tl/expected.hpp>

#include "engine/detail/json_document.h"
#include "engine/load_error.h"

namespace fixpoint::engine::detail {

/// The files that model.safetensors.index.json names: plain names, so that a model reads nothing outside its directory.
[[nodiscard]] tl::expected<std::set<std::string>, LoadError> shard_names(const Json& index, const std::string& file);

}  // namespace fixpoint::engine::detail
