#include "agent/extract.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "agent/detail/fences.h"
#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

using detail::Fence;
using detail::has_word;
using detail::is_identifier_character;
using detail::split_lines;
using detail::trimmed;

constexpr std::size_t kMaxProgramBytes = std::size_t{256} << 10;

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }
bool is_indented(std::string_view line) { return !line.empty() && (line.front() == ' ' || line.front() == '\t'); }

/// The program defines what the tests call.
bool defines(std::string_view code, std::string_view language, std::string_view entry_point) {
  if (entry_point.empty()) return false;
  if (language != "python") {
    // A definition has a body; a call as a statement ends at once.
    return has_word(code, entry_point) && code.find('{') != std::string_view::npos;
  }
  for (std::string_view line : split_lines(code)) {
    line = trimmed(line);
    if (line.starts_with("async ")) line = trimmed(line.substr(6));
    for (const std::string_view keyword : {"def ", "class "}) {
      if (!line.starts_with(keyword)) continue;
      const std::string_view name = trimmed(line.substr(keyword.size()));
      if (name.starts_with(entry_point) && (name.size() == entry_point.size() ||
                                            !is_identifier_character(name[entry_point.size()]))) {
        return true;
      }
    }
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && trimmed(line.substr(0, equals)) == entry_point &&
        line.substr(equals, 2) != "==") {
      return true;
    }
  }
  return false;
}

/// Python: a line that only code begins with.
bool looks_like_code(std::string_view line) {
  static constexpr std::string_view kStarts[] = {"def ", "class ", "import ", "from ", "@", "async def "};
  if (line.starts_with("from ") && line.find(" import ") == std::string_view::npos) return false;
  if (line.starts_with("class ") && line.find(':') == std::string_view::npos) return false;
  if (line.starts_with("import ") && line.find('.') == line.size() - 1) return false;
  return std::any_of(std::begin(kStarts), std::end(kStarts), [&](std::string_view start) { return line.starts_with(start); });
}

/// Python at the left margin: the region goes on over it.
bool continues_code(std::string_view line) {
  if (is_blank(line) || is_indented(line) || looks_like_code(line)) return true;
  static constexpr std::string_view kStarts[] = {"#", "if ", "for ", "while ", "try:", "except", "finally:", "else:", "elif ",
                                                 "with ", "return ", "print(", "assert ", "raise ", ")", "]", "}", "\"\"\""};
  if (std::any_of(std::begin(kStarts), std::end(kStarts), [&](std::string_view start) { return line.starts_with(start); })) {
    return true;
  }
  // name = …, name(…), name += …
  std::size_t end = 0;
  while (end < line.size() && (is_identifier_character(line[end]) || line[end] == '.' || line[end] == ',')) ++end;
  const std::string_view rest = trimmed(line.substr(end));
  return end > 0 && (rest.starts_with("=") || rest.starts_with("+=") || rest.starts_with("[") ||
                     (end < line.size() && line[end] == '(' && line.back() == ')'));
}

struct Region {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Code without a fence: from the first line that only code begins with, as far as it goes on.
std::optional<Region> find_python(std::string_view text) {
  std::size_t at = 0;
  std::optional<Region> region;
  for (const std::string_view line : split_lines(text)) {
    const std::size_t end = std::min(at + line.size() + 1, text.size());
    if (!region) {
      if (looks_like_code(line)) region = Region{at, end};
    } else if (continues_code(line)) {
      if (!is_blank(line)) region->end = end;
    } else {
      break;
    }
    at = end;
  }
  return region;
}

std::optional<Region> find_unfenced(std::string_view text, std::string_view language) {
  if (language == "python") return find_python(text);
  static constexpr std::string_view kStarts[] = {"#include", "#!", "package ", "import ", "use ",   "function ", "const ",
                                                 "class ",   "public ", "fn ",  "func ",   "int ",   "using ",    "let ",
                                                 "var ",     "'use strict'", "\"use strict\""};
  std::size_t at = 0;
  for (const std::string_view line : split_lines(text)) {
    const bool code = std::any_of(std::begin(kStarts), std::end(kStarts),
                                  [&](std::string_view start) { return line.starts_with(start); });
    if (code && (line.find_first_of("({;<\"!") != std::string_view::npos)) {
      const std::size_t brace = text.rfind('}');
      return Region{at, brace == std::string_view::npos || brace < at ? text.size() : brace + 1};
    }
    at = std::min(at + line.size() + 1, text.size());
  }
  return std::nullopt;
}

std::string indented(std::string_view code) {
  std::string out;
  for (const std::string_view line : split_lines(code)) {
    if (!is_blank(line)) out += "    ";
    out += line;
    out += '\n';
  }
  return out;
}

/// Python whose function has lost its head: "f(xs):" without "def", or a body alone.
std::optional<std::string> repair_header(std::string_view code, std::string_view entry_point, std::string_view header) {
  if (entry_point.empty() || defines(code, "python", entry_point)) return std::nullopt;
  std::string out;
  bool repaired = false;
  for (const std::string_view line : split_lines(code)) {
    const bool head = !repaired && line.starts_with(entry_point) && line.substr(entry_point.size()).starts_with("(") &&
                      trimmed(line).ends_with(":");
    if (head) out += "def ";
    repaired = repaired || head;
    out += line;
    out += '\n';
  }
  if (repaired) return out;
  const bool body = has_word(code, "return") && !has_word(code, "def") && !has_word(code, "class");
  if (header.empty() || !body) return std::nullopt;
  // A chat model drops the blanks before the first line only; then the rest stands one level deeper than it.
  const std::vector<std::string_view> lines = split_lines(code);
  const std::size_t first_end = std::min(code.find('\n'), code.size());
  const bool first_alone = lines.size() > 1 && !is_indented(lines.front()) && !trimmed(lines.front()).ends_with(":") &&
                           std::all_of(lines.begin() + 1, lines.end(),
                                       [](std::string_view line) { return is_blank(line) || is_indented(line); });
  out = std::string(header) + "\n";
  if (first_alone) {
    out += "    " + std::string(lines.front()) + "\n" + indented(detail::dedented(code.substr(first_end + 1)));
  } else {
    out += indented(detail::dedented(code));
  }
  return out;
}

/// One newline at the end, none before the first line with content.
std::string tidy(std::string_view code, bool dedent) {
  std::string text = dedent ? detail::dedented(code) : std::string(code);
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos && is_blank(std::string_view(text).substr(begin, end - begin));
       end = text.find('\n', begin)) {
    begin = end + 1;
  }
  const std::size_t last = text.find_last_not_of(" \t\n");
  if (last == std::string::npos || last < begin) return {};
  return text.substr(begin, last + 1 - begin) + "\n";
}

const Fence* choose(const std::vector<Fence>& fences, std::string_view language, std::string_view entry_point) {
  const Fence* chosen = nullptr;
  int best = -1;
  for (const Fence& fence : fences) {
    if (trimmed(fence.content).empty()) continue;
    const std::string info = fence_language(fence);
    const int labelled = canonical_language(info) == language ? 2 : info.empty() ? 1 : 0;
    const int rank = (defines(fence.content, language, entry_point) ? 4 : 0) + labelled;
    if (rank < best) continue;
    best = rank;
    chosen = &fence;
  }
  return chosen;
}

/// A model that began without an opening mark still closes one. How much of `text` stands before such a lone mark, where that
/// is the program; else nothing.
std::optional<std::size_t> before_lone_mark(std::string_view text, const std::vector<Fence>& fences, std::string_view language,
                                            std::string_view entry_point) {
  if (fences.size() != 1 || fences[0].closed || !fences[0].info.empty()) return std::nullopt;
  const std::string_view before = text.substr(0, fences[0].begin), after = fences[0].content;
  if (trimmed(before).empty()) return std::nullopt;
  if (trimmed(after).empty()) return fences[0].begin;
  const auto is_program = [&](std::string_view code) {
    return defines(code, language, entry_point) || find_unfenced(code, language).has_value() ||
           (language == "python" && !entry_point.empty() && has_word(code, "return"));
  };
  return is_program(before) && !is_program(after) ? std::optional(fences[0].begin) : std::nullopt;
}

std::string words_around(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kMaxBytes = 8'192;
  std::string_view words = trimmed(text.substr(0, begin));
  if (words.empty()) words = trimmed(text.substr(std::min(end, text.size())));
  return std::string(words.substr(0, detail::floor_character(words, kMaxBytes)));
}

Extracted finish(Extracted found, std::string_view language, std::string_view entry_point, std::string_view header) {
  if (language == "python") {
    if (std::optional<std::string> repaired = repair_header(found.program, entry_point, header)) {
      found.program = tidy(*repaired, false);
      found.kind = ExtractKind::repaired_header;
    }
  }
  return found;
}

}  // namespace

Extracted extract(std::string_view raw, std::string_view language, std::string_view entry_point, std::string_view header) {
  if (raw.starts_with("\xEF\xBB\xBF")) raw.remove_prefix(3);
  std::string text = detail::unix_lines(raw.substr(0, kMaxProgramBytes * 2));
  if (trimmed(text).empty()) return {};
  std::vector<Fence> fences = detail::find_fences(text);
  std::string remark;  // behind a program that only its end marks
  if (const auto end = before_lone_mark(text, fences, language, entry_point)) {
    remark = words_around(fences[0].content, 0, 0);
    text.resize(*end);
    fences.clear();
  }
  if (const Fence* fence = choose(fences, language, entry_point)) {
    const std::string info = fence_language(*fence);
    const bool other = !info.empty() && canonical_language(info) != language;
    Extracted found{.kind = other          ? ExtractKind::other_language
                            : fence->closed ? ExtractKind::fenced
                                            : ExtractKind::unclosed_fence,
                    .program = tidy(fence->content, language == "python"),
                    .explanation = words_around(text, fence->begin, fence->end)};
    return finish(std::move(found), language, entry_point, header);
  }
  // Fences with nothing in them and nothing around them: there is no program.
  if (!fences.empty() && words_around(text, fences.front().begin, fences.back().end).empty()) return {};
  if (const std::optional<Region> region = find_unfenced(text, language)) {
    return finish({.kind = ExtractKind::unfenced_code,
                   .program = tidy(std::string_view(text).substr(region->begin, region->end - region->begin), false),
                   .explanation = remark.empty() ? words_around(text, region->begin, region->end) : remark},
                  language, entry_point, header);
  }
  return finish({.kind = ExtractKind::whole_text, .program = tidy(text, language == "python"), .explanation = remark}, language,
                entry_point, header);
}

std::string find_header(std::string_view statement, std::string_view entry_point) {
  if (entry_point.empty()) return {};
  std::string def = "def ";
  def.append(entry_point).append("(");
  if (const auto at = statement.find(def); at != std::string_view::npos) {
    const std::string_view line = statement.substr(at, statement.find('\n', at) - at);
    const std::size_t colon = line.rfind(':');
    return colon == std::string_view::npos ? std::string() : std::string(line.substr(0, colon + 1));
  }
  std::string call = "`";
  call.append(entry_point).append("(");
  if (const auto at = statement.find(call); at != std::string_view::npos) {
    const std::string_view rest = statement.substr(at + 1);
    const std::size_t close = rest.find(")`");
    if (close != std::string_view::npos && rest.substr(0, close).find('\n') == std::string_view::npos) {
      std::string head = "def ";
      return head.append(rest.substr(0, close + 1)).append(":");
    }
  }
  return {};
}

std::vector<std::string> extract_assertions(std::string_view raw, std::size_t limit) {
  const std::string text = detail::unix_lines(raw);
  std::vector<std::string> found;
  std::string current;
  int depth = 0;
  for (const std::string_view line : split_lines(text)) {
    if (current.empty()) {
      const std::string_view start = trimmed(line);
      if (!start.starts_with("assert ") && !start.starts_with("assert(")) continue;
      if (found.size() == limit) break;
      current = start;
    } else {
      current.append("\n").append(line);
    }
    depth = 0;
    char quote = 0;
    for (std::size_t i = 0; i < current.size(); ++i) {
      const char c = current[i];
      if (quote != 0) {
        if (c == '\\') ++i;
        else if (c == quote || c == '\n') quote = 0;
      } else if (c == '"' || c == '\'') quote = c;
      else if (c == '(' || c == '[' || c == '{') ++depth;
      else if (c == ')' || c == ']' || c == '}') --depth;
    }
    if (depth <= 0 || current.size() > 4'096) {
      if (depth <= 0) found.push_back(current);
      current.clear();
    }
  }
  return found;
}

}  // namespace fixpoint::agent
