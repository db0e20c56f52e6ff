#pragma once

#include <string>
#include <string_view>

namespace fixpoint::engine::detail {

/// Byte-level vocabularies write every byte as a printable character: the bytes that Latin-1 prints stand for themselves,
/// the other 68 for U+0100 and on, in order. This gives the bytes back; a spelling with a character outside that alphabet
/// is taken as plain text.
[[nodiscard]] std::string bytes_of_spelling(std::string_view spelling);

}  // namespace fixpoint::engine::detail
