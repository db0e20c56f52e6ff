#include "engine/detail/pre_tokenizer.h"

#include <utility>

#include "engine/detail/unicode.h"
#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

struct Char {
  char32_t code = 0;
  std::uint8_t length = 0;  ///< 0 at the end of the text
  std::uint8_t classes = 0;

  [[nodiscard]] bool is(std::uint8_t mask) const { return (classes & mask) != 0; }
  [[nodiscard]] bool is_newline() const { return length == 1 && (code == '\r' || code == '\n'); }
  /// [^\s\p{L}\p{N}]
  [[nodiscard]] bool is_symbol() const { return length != 0 && !is(kLetter | kNumber | kWhitespace); }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), classes_(CharClasses::get()) {}

  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] Char at(std::size_t pos) const {
    if (pos >= text_.size()) {
      return {};
    }
    const Utf8Step step = utf8_step(text_, pos);
    if (step.kind != Utf8Step::Kind::character) {
      return {step.code, step.length, 0};
    }
    return {step.code, step.length, classes_.of(step.code)};
  }
  /// The end of the run of characters of these classes that starts at `pos`.
  [[nodiscard]] std::size_t run(std::size_t pos, std::uint8_t mask) const {
    for (Char c = at(pos); c.is(mask); c = at(pos)) {
      pos += c.length;
    }
    return pos;
  }
  [[nodiscard]] std::size_t symbol_run(std::size_t pos) const {
    for (Char c = at(pos); c.is_symbol(); c = at(pos)) {
      pos += c.length;
    }
    return pos;
  }
  [[nodiscard]] std::size_t newline_run(std::size_t pos) const {
    while (at(pos).is_newline()) {
      ++pos;
    }
    return pos;
  }
  /// The end of what  \s+(?!\S)|\s+  matches at `pos`, where whitespace stands: a run leaves its last character to the
  /// word that follows, unless it has only one.
  [[nodiscard]] std::size_t spaces(std::size_t pos) const {
    std::size_t end = pos;
    std::size_t last = pos;
    for (Char c = at(end); c.is(kWhitespace); c = at(end)) {
      last = end;
      end += c.length;
    }
    return end == size() || last == pos ? end : last;
  }
  /// The end of  's|'t|'re|'ve|'m|'ll|'d  at `pos`, or `pos`. Without case, U+017F counts as s, as Unicode folds it.
  [[nodiscard]] std::size_t contraction(std::size_t pos, bool any_case) const {
    if (at(pos).code != '\'') {
      return pos;
    }
    const auto letter = [&](std::size_t where) -> std::pair<char32_t, std::size_t> {
      const Char c = at(where);
      char32_t code = c.code;
      if (any_case) {
        code = code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code == 0x17F ? U's' : code;
      }
      return {code, where + c.length};
    };
    const auto [first, after_first] = letter(pos + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') {
      return after_first;
    }
    const auto [second, after_second] = letter(after_first);
    const bool two = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
    return two ? after_second : pos;
  }

 private:
  std::string_view text_;
  const CharClasses& classes_;
};

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word(const Reader& reader, std::size_t pos) {
  if (const std::size_t end = reader.contraction(pos, false); end != pos) {
    return end;
  }
  const Char first = reader.at(pos);
  const std::size_t start = first.code == ' ' ? pos + 1 : pos;
  const Char c = reader.at(start);
  if (c.is(kLetter)) {
    return reader.run(start, kLetter);
  }
  if (c.is(kNumber)) {
    return reader.run(start, kNumber);
  }
  if (c.is_symbol()) {
    return reader.symbol_run(start);
  }
  return reader.spaces(pos);
}

// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t whitespace_word(const Reader& reader, std::size_t pos) {
  std::size_t after_newline = pos;
  std::size_t end = pos;
  for (Char c = reader.at(end); c.is(kWhitespace); c = reader.at(end)) {
    end += c.length;
    if (c.is_newline()) {
      after_newline = end;
    }
  }
  return after_newline != pos ? after_newline : reader.spaces(pos);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama3_word(const Reader& reader, std::size_t pos, int digits) {
  if (const std::size_t end = reader.contraction(pos, true); end != pos) {
    return end;
  }
  const Char first = reader.at(pos);
  if (first.is(kLetter)) {
    return reader.run(pos, kLetter);
  }
  if (first.is(kNumber)) {
    std::size_t end = pos;
    for (Char c = first; digits > 0 && c.is(kNumber); c = reader.at(end)) {
      end += c.length;
      --digits;
    }
    return end;
  }
  const std::size_t second = pos + first.length;
  if (!first.is_newline() && reader.at(second).is(kLetter)) {
    return reader.run(second, kLetter);
  }
  const std::size_t start = first.code == ' ' ? second : pos;
  if (reader.at(start).is_symbol()) {
    return reader.newline_run(reader.symbol_run(start));
  }
  return whitespace_word(reader, pos);
}

bool in_deepseek_cjk(const Char& c) {  // [一-龥ࠀ-一가-퟿]
  return (c.code >= 0x0800 && c.code <= 0x9FA5) || (c.code >= 0xAC00 && c.code <= 0xD7FF);
}

// The DeepSeek tokenizers apply several expressions in turn, each to the pieces that the ones before have left or made.
// A matcher says where its match at `pos` ends, or `pos` for none; what lies between matches becomes pieces too.
template <typename Match>
void split(std::string_view text, std::vector<std::uint32_t>& ends, const Match& match) {
  std::vector<std::uint32_t> out;
  out.reserve(ends.size());
  std::size_t piece_start = 0;
  for (const std::uint32_t piece_end : ends) {
    const Reader piece(text.substr(piece_start, piece_end - piece_start));
    std::size_t unmatched = 0;
    std::size_t pos = 0;
    while (pos < piece.size()) {
      const std::size_t end = match(piece, pos);
      if (end == pos) {
        pos += piece.at(pos).length;
        continue;
      }
      if (unmatched != pos) {
        out.push_back(static_cast<std::uint32_t>(piece_start + pos));
      }
      out.push_back(static_cast<std::uint32_t>(piece_start + end));
      unmatched = pos = end;
    }
    if (unmatched != pos) {
      out.push_back(piece_end);
    }
    piece_start = piece_end;
  }
  ends.swap(out);
}

std::size_t match_newline(const Reader& piece, std::size_t pos) {  // [\r\n]
  return piece.at(pos).is_newline() ? pos + 1 : pos;
}

template <std::uint8_t Mask>
std::size_t match_spaced_run(const Reader& piece, std::size_t pos) {  // \s?[class]+
  const Char first = piece.at(pos);
  const std::size_t start = first.is(kWhitespace) && !first.is(Mask) ? pos + first.length : pos;
  const std::size_t end = piece.run(start, Mask);
  return end == start ? pos : end;
}

template <bool One>
std::size_t match_numbers(const Reader& piece, std::size_t pos) {  // \p{N} or \p{N}+
  const Char first = piece.at(pos);
  if (!first.is(kNumber)) {
    return pos;
  }
  return One ? pos + first.length : piece.run(pos, kNumber);
}

std::size_t match_cjk(const Reader& piece, std::size_t pos) {
  for (Char c = piece.at(pos); in_deepseek_cjk(c); c = piece.at(pos)) {
    pos += c.length;
  }
  return pos;
}

void split_trailing_spaces(std::string_view text, std::vector<std::uint32_t>& ends) {  // \s+$
  std::vector<std::uint32_t> out;
  out.reserve(ends.size());
  std::size_t piece_start = 0;
  for (const std::uint32_t piece_end : ends) {
    const Reader piece(text.substr(piece_start, piece_end - piece_start));
    std::size_t spaces_start = 0;
    for (std::size_t pos = 0; pos < piece.size();) {
      const Char c = piece.at(pos);
      pos += c.length;
      spaces_start = c.is(kWhitespace) ? spaces_start : pos;
    }
    if (spaces_start != 0 && spaces_start != piece.size()) {
      out.push_back(static_cast<std::uint32_t>(piece_start + spaces_start));
    }
    out.push_back(piece_end);
    piece_start = piece_end;
  }
  ends.swap(out);
}

}  // namespace

void pre_tokenize(PreTokenizer kind, std::string_view text, std::vector<std::uint32_t>& ends) {
  ends.clear();
  if (text.empty()) {
    return;
  }
  const auto scan = [&](const auto& word) {
    const Reader reader(text);
    for (std::size_t pos = 0; pos < text.size();) {
      pos = word(reader, pos);
      ends.push_back(static_cast<std::uint32_t>(pos));
    }
  };
  const auto whole = [&] { ends.push_back(static_cast<std::uint32_t>(text.size())); };
  switch (kind) {
    case PreTokenizer::gpt2:
      return scan(gpt2_word);
    case PreTokenizer::llama3:
      return scan([](const Reader& reader, std::size_t pos) { return llama3_word(reader, pos, 3); });
    case PreTokenizer::qwen2:
      return scan([](const Reader& reader, std::size_t pos) { return llama3_word(reader, pos, 1); });
    case PreTokenizer::deepseek_coder:
      whole();
      split(text, ends, match_newline);
      split(text, ends, match_spaced_run<kLetter>);
      split(text, ends, match_spaced_run<kPunctuation>);
      split(text, ends, match_cjk);
      split(text, ends, match_numbers<true>);
      return;
    case PreTokenizer::deepseek_llm:
      whole();
      split(text, ends, match_newline);
      split(text, ends, match_spaced_run<kDeepseekLlmLetter>);
      split(text, ends, match_spaced_run<kDeepseekLlmPunctuation>);
      split_trailing_spaces(text, ends);
      split(text, ends, match_cjk);
      split(text, ends, match_numbers<false>);
      return;
  }
}

}  // namespace fixpoint::engine::detail
