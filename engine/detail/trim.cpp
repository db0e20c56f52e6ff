#include "engine/detail/trim.h"

#include "engine/detail/unicode.h"
#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

bool is_space(const Utf8Step& step) {
  if (step.kind != Utf8Step::Kind::character) return false;
  return (step.code >= 0x1C && step.code <= 0x1F) || (CharClasses::get().of(step.code) & kWhitespace) != 0;
}

}  // namespace

std::string_view trim_start(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text, 0);
    if (!is_space(step)) break;
    text.remove_prefix(step.length);
  }
  return text;
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    for (int back = 0; back < 3 && last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0U) == 0x80; ++back) --last;
    const Utf8Step step = utf8_step(text, last);
    if (!is_space(step) || last + step.length != text.size()) break;
    text.remove_suffix(step.length);
  }
  return text;
}

}  // namespace fixpoint::engine::detail
