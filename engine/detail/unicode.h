#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace fixpoint::engine::detail {

/// What the tokenizers ask about a code point, as bits.
enum CharClass : std::uint8_t {
  kLetter = 1,               ///< \p{L}
  kNumber = 2,               ///< \p{N}
  kWhitespace = 4,           ///< White_Space
  kPunctuation = 8,          ///< \p{P}
  kDeepseekLlmLetter = 16,   ///< the letters that DeepSeek-LLM's tokenizer lists
  kDeepseekLlmPunctuation = 32,
  kNormalise = 64,           ///< NFC may change text that holds it: NFC_Quick_Check is not Yes, or it is a combining mark
};

// The generated tables (unicode_tables.cpp; scripts/make_unicode_tables), sorted by code point.
struct ClassRange {
  std::uint32_t first, last;
  std::uint8_t classes;
};
struct CombiningRange {
  std::uint32_t first, last;
  std::uint8_t combining_class;
};
/// One step of a canonical decomposition. `second` is 0 for singletons; Hangul is computed, not listed.
struct Decomposition {
  std::uint32_t composed, first, second;
  bool composes;  ///< not a composition exclusion
};
extern const std::span<const ClassRange> kClassRanges;
extern const std::span<const CombiningRange> kCombiningRanges;
extern const std::span<const Decomposition> kDecompositions;

/// Classes of every code point, of one version of Unicode (stated in unicode_tables.cpp).
class CharClasses {
 public:
  [[nodiscard]] static const CharClasses& get();

  [[nodiscard]] std::uint8_t of(char32_t code) const {
    return code < kDirect ? direct_[code] : beyond(code);
  }

 private:
  CharClasses();
  [[nodiscard]] static std::uint8_t beyond(char32_t code);

  static constexpr char32_t kDirect = 0x20000;  // planes 0 and 1; above, almost everything is one ideograph block
  std::array<std::uint8_t, kDirect> direct_{};
};

}  // namespace fixpoint::engine::detail
