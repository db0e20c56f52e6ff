#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "engine/load_error.h"

namespace fixpoint::engine::detail {

[[nodiscard]] inline tl::unexpected<LoadError> fail(LoadError::Kind kind, std::string file, std::string where,
                                                    std::string what) {
  return tl::unexpected(LoadError{kind, std::move(file), std::move(where), std::move(what)});
}

/// `text` from a file as it may stand in a message: in quotes, no control characters, at most 80 bytes.
[[nodiscard]] std::string shown(std::string_view text);

[[nodiscard]] inline std::string at_offset(std::size_t offset) { return "offset " + std::to_string(offset); }

}  // namespace fixpoint::engine::detail
