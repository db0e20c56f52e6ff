#include "engine/detail/unicode.h"

#include <algorithm>

namespace fixpoint::engine::detail {

const CharClasses& CharClasses::get() {
  static const CharClasses instance;
  return instance;
}

CharClasses::CharClasses() {
  for (const ClassRange& range : kClassRanges) {
    for (std::uint32_t code = range.first; code <= range.last && code < kDirect; ++code) {
      direct_[code] = range.classes;
    }
  }
}

std::uint8_t CharClasses::beyond(char32_t code) {
  const auto after = std::upper_bound(kClassRanges.begin(), kClassRanges.end(), code,
                                      [](char32_t value, const ClassRange& range) { return value < range.first; });
  if (after == kClassRanges.begin() || std::prev(after)->last < code) {
    return 0;
  }
  return std::prev(after)->classes;
}

}  // namespace fixpoint::engine::detail
