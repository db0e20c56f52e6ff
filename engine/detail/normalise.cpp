#include "engine/detail/normalise.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/detail/unicode.h"
#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

// Hangul syllables are composed by arithmetic (Unicode, section 3.12).
constexpr char32_t kHangulBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTrailBase = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

/// Bytes that are not UTF-8 travel as code points past Unicode's end: starters that compose with nothing.
constexpr char32_t kRawByte = 0x110000;

struct Mark {
  char32_t code;
  std::uint8_t combining_class;
};

std::uint8_t combining_class_of(char32_t code) {
  const auto after = std::upper_bound(kCombiningRanges.begin(), kCombiningRanges.end(), code,
                                      [](char32_t value, const CombiningRange& range) { return value < range.first; });
  if (after == kCombiningRanges.begin() || std::prev(after)->last < code) return 0;
  return std::prev(after)->combining_class;
}

void decompose(char32_t code, std::vector<Mark>& out) {
  if (code - kHangulBase < kSyllables) {
    const char32_t index = code - kHangulBase;
    out.push_back({kLeadBase + index / (kVowels * kTrails), 0});
    out.push_back({kVowelBase + index % (kVowels * kTrails) / kTrails, 0});
    if (index % kTrails != 0) out.push_back({kTrailBase + index % kTrails, 0});
    return;
  }
  const auto entry = std::lower_bound(kDecompositions.begin(), kDecompositions.end(), code,
                                      [](const Decomposition& each, char32_t value) { return each.composed < value; });
  if (entry == kDecompositions.end() || entry->composed != code) {
    out.push_back({code, combining_class_of(code)});
    return;
  }
  decompose(entry->first, out);
  if (entry->second != 0) decompose(entry->second, out);
}

/// The pairs that compose, sorted by their parts.
const std::vector<Decomposition>& compositions() {
  static const std::vector<Decomposition> pairs = [] {
    std::vector<Decomposition> out;
    std::copy_if(kDecompositions.begin(), kDecompositions.end(), std::back_inserter(out),
                 [](const Decomposition& each) { return each.composes; });
    std::sort(out.begin(), out.end(), [](const Decomposition& a, const Decomposition& b) {
      return a.first != b.first ? a.first < b.first : a.second < b.second;
    });
    return out;
  }();
  return pairs;
}

/// What the two compose to, or 0.
char32_t compose(char32_t first, char32_t second) {
  if (first - kLeadBase < kLeads && second - kVowelBase < kVowels) {
    return kHangulBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTrails;
  }
  if (first - kHangulBase < kSyllables && (first - kHangulBase) % kTrails == 0 && second - kTrailBase < kTrails &&
      second != kTrailBase) {
    return first + (second - kTrailBase);
  }
  const auto& pairs = compositions();
  const auto entry = std::lower_bound(pairs.begin(), pairs.end(), second, [first](const Decomposition& each, char32_t value) {
    return each.first != first ? each.first < first : each.second < value;
  });
  return entry != pairs.end() && entry->first == first && entry->second == second ? entry->composed : 0;
}

void order_marks(std::vector<Mark>& text) {
  for (auto from = text.begin(); from != text.end();) {
    if (from->combining_class == 0) {
      ++from;
      continue;
    }
    const auto to = std::find_if(from, text.end(), [](const Mark& mark) { return mark.combining_class == 0; });
    std::stable_sort(from, to, [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    from = to;
  }
}

/// A mark joins the last starter unless a mark of its class or higher, or a starter, that stayed stands between.
void compose_all(std::vector<Mark>& text) {
  std::size_t kept = 0;
  std::size_t starter = SIZE_MAX;
  for (const Mark mark : text) {
    const bool adjacent = starter != SIZE_MAX && starter + 1 == kept;
    const bool open = starter != SIZE_MAX &&
                      (adjacent || (mark.combining_class != 0 && text[kept - 1].combining_class < mark.combining_class));
    if (open) {
      if (const char32_t composed = compose(text[starter].code, mark.code); composed != 0) {
        text[starter].code = composed;
        continue;
      }
    }
    if (mark.combining_class == 0) starter = kept;
    text[kept++] = mark;
  }
  text.resize(kept);
}

void append_nfc(std::string_view region, std::string& out) {
  std::vector<Mark> text;
  for (std::size_t pos = 0; pos < region.size();) {
    const Utf8Step step = utf8_step(region, pos);
    if (step.kind == Utf8Step::Kind::character) {
      decompose(step.code, text);
    } else {
      for (std::size_t i = 0; i < step.length; ++i) {
        text.push_back({kRawByte + static_cast<std::uint8_t>(region[pos + i]), 0});
      }
    }
    pos += step.length;
  }
  order_marks(text);
  compose_all(text);
  for (const Mark& mark : text) {
    if (mark.code >= kRawByte) {
      out += static_cast<char>(mark.code - kRawByte);
    } else {
      append_utf8(out, mark.code);
    }
  }
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  const CharClasses& classes = CharClasses::get();
  storage.clear();
  std::size_t done = 0;    // what `storage` holds so far, if it holds anything
  std::size_t stable = 0;  // the last character that nothing before it can change
  for (std::size_t pos = 0; pos < text.size();) {
    Utf8Step step = utf8_step(text, pos);
    const auto may_change = [&] {
      return step.kind == Utf8Step::Kind::character && (classes.of(step.code) & kNormalise) != 0;
    };
    if (!may_change()) {
      stable = pos;
      pos += step.length;
      continue;
    }
    // From the character before, which may compose with this one, up to the next that is stable.
    std::size_t end = pos;
    while (end < text.size()) {
      step = utf8_step(text, end);
      if (!may_change()) break;
      end += step.length;
    }
    storage.append(text, done, stable - done);
    append_nfc(text.substr(stable, end - stable), storage);
    done = stable = pos = end;
  }
  if (done == 0) return text;
  storage.append(text, done);
  return storage;
}

}  // namespace fixpoint::engine::detail
