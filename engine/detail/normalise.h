#pragma once

#include <string>
#include <string_view>

namespace fixpoint::engine::detail {

/// Unicode Normalization Form C (UAX #15) of `text`, in `storage` where it differs from `text`. Bytes that are not UTF-8
/// stay as they are. Cost: linear, but for n log n in runs of combining marks.
[[nodiscard]] std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace fixpoint::engine::detail
