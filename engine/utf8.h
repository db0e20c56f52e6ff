#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fixpoint::engine {

/// One step through UTF-8 text. Ill-formed bytes are cut as the WHATWG decoder cuts them (Unicode, "maximal subpart"):
/// each such step stands for one U+FFFD.
struct Utf8Step {
  enum class Kind : std::uint8_t {
    character,
    ill_formed,
    incomplete,  ///< the text ends inside a character that more bytes could complete
  };
  char32_t code = 0xFFFD;
  std::uint8_t length = 1;
  Kind kind = Kind::character;
};

/// Precondition: pos < text.size().
[[nodiscard]] inline Utf8Step utf8_step(std::string_view text, std::size_t pos) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(pos);
  if (lead < 0x80) {
    return {lead, 1, Utf8Step::Kind::character};
  }
  int continuation = 0;
  char32_t code = 0;
  // The range of the second byte keeps out overlong forms, surrogates and what lies past U+10FFFF.
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    continuation = 1;
    code = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    continuation = 2;
    code = lead & 0x0FU;
    low = lead == 0xE0 ? 0xA0 : 0x80;
    high = lead == 0xED ? 0x9F : 0xBF;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    continuation = 3;
    code = lead & 0x07U;
    low = lead == 0xF0 ? 0x90 : 0x80;
    high = lead == 0xF4 ? 0x8F : 0xBF;
  } else {
    return {0xFFFD, 1, Utf8Step::Kind::ill_formed};
  }
  for (int i = 1; i <= continuation; ++i) {
    const auto length = static_cast<std::uint8_t>(i);
    if (pos + static_cast<std::size_t>(i) >= text.size()) {
      return {0xFFFD, length, Utf8Step::Kind::incomplete};
    }
    const std::uint8_t next = byte(pos + static_cast<std::size_t>(i));
    if (next < low || next > high) {
      return {0xFFFD, length, Utf8Step::Kind::ill_formed};
    }
    low = 0x80;
    high = 0xBF;
    code = (code << 6U) | (next & 0x3FU);
  }
  return {code, static_cast<std::uint8_t>(continuation + 1), Utf8Step::Kind::character};
}

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// `bytes` with every ill-formed sequence replaced by U+FFFD.
[[nodiscard]] inline std::string as_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t pos = 0; pos < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, pos);
    out += step.kind == Utf8Step::Kind::character ? bytes.substr(pos, step.length) : kReplacement;
    pos += step.length;
  }
  return out;
}

inline void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    out += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    out += static_cast<char>(0x80U | ((code >> 12U) & 0x3FU));
    out += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  }
}

}  // namespace fixpoint::engine
