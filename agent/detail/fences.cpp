#include "agent/detail/fences.h"

#include <algorithm>
#include <optional>

#include "agent/detail/utf8.h"

namespace fixpoint::agent::detail {
namespace {

struct Marker {
  char mark = '`';
  std::size_t length = 0;
  std::size_t indent = 0;
  std::string_view info;
};

/// A line that can open or close a block. Text before the marks is allowed where `anywhere`: models write "Here:```python".
std::optional<Marker> read_marker(std::string_view line, bool anywhere) {
  std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  const bool at_start = line.substr(start, 3) == "```" || line.substr(start, 3) == "~~~";
  if (!at_start) {
    if (!anywhere) return std::nullopt;
    start = line.find("```");
    if (start == std::string_view::npos) return std::nullopt;
  }
  Marker marker{.mark = line[start], .indent = at_start ? start : 0};
  std::size_t end = start;
  while (end < line.size() && line[end] == marker.mark) ++end;
  marker.length = end - start;
  marker.info = trimmed(line.substr(end));
  // Inline code (```x```) is not a fence.
  if (marker.info.find('`') != std::string_view::npos) return std::nullopt;
  if (!at_start && marker.info.find(' ') != std::string_view::npos) return std::nullopt;
  return marker;
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size())) ++found;
  return found;
}

bool is_word(std::string_view info) {
  return !info.empty() && std::all_of(info.begin(), info.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '_' || c == '#' || c == '.';
  });
}

void add_content(std::string& content, std::string_view line, std::size_t indent) {
  std::size_t skip = 0;
  while (skip < indent && skip < line.size() && (line[skip] == ' ' || line[skip] == '\t')) ++skip;
  content += line.substr(skip);
  content += '\n';
}

}  // namespace

std::vector<Fence> find_fences(std::string_view text) {
  std::vector<Fence> fences;
  // A fence within triple quotes only counts as text if the quotes are closed again further on.
  const std::size_t all_double = count(text, "\"\"\"");
  const std::size_t all_single = count(text, "'''");
  std::size_t seen_double = 0, seen_single = 0;   // in the whole text so far
  std::size_t open_double = 0, open_single = 0;   // when the current block opened
  std::optional<Marker> open;
  Fence current;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, newline - at);
    const std::size_t next = std::min(newline + 1, text.size());
    const std::optional<Marker> marker = read_marker(line, !open);
    const bool quoted = open && (((seen_double - open_double) % 2 == 1 && seen_double < all_double) ||
                                 ((seen_single - open_single) % 2 == 1 && seen_single < all_single));
    bool is_text = true;
    if (marker && !open) {
      open = marker;
      open_double = seen_double;
      open_single = seen_single;
      current = Fence{.info = std::string(marker->info), .begin = at};
      is_text = false;
    } else if (marker && marker->mark == open->mark && marker->length >= open->length && !quoted) {
      if (marker->info.empty()) {
        current.closed = true;
        current.end = next;
        fences.push_back(std::move(current));
        open.reset();
        is_text = false;
      } else if (is_word(marker->info) && marker->length == open->length && marker->indent <= open->indent) {
        current.end = at;
        fences.push_back(std::move(current));
        open = marker;
        open_double = seen_double;
        open_single = seen_single;
        current = Fence{.info = std::string(marker->info), .begin = at};
        is_text = false;
      }
    }
    if (is_text && open) add_content(current.content, line, open->indent);
    seen_double += count(line, "\"\"\"");
    seen_single += count(line, "'''");
    if (newline == text.size()) break;
    at = next;
  }
  if (open) {
    current.end = text.size();
    fences.push_back(std::move(current));
  }
  return fences;
}

std::string fenced(std::string_view info, std::string_view content) {
  std::string fence = "```";
  while (content.find(fence) != std::string_view::npos) fence += '`';
  std::string text = fence;
  text += info;
  text += '\n';
  text += content;
  if (!content.empty() && content.back() != '\n') text += '\n';
  return text += fence;
}

std::string fence_language(const Fence& fence) {
  std::string word(fence.info.substr(0, fence.info.find_first_of(" \t{,:")));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string unix_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

std::string dedented(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  std::optional<std::string_view> shared;
  for (const std::string_view line : lines) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    std::string_view indent = line.substr(0, first);
    if (!shared) shared = indent;
    std::size_t same = 0;
    while (same < shared->size() && same < indent.size() && (*shared)[same] == indent[same]) ++same;
    shared = shared->substr(0, same);
  }
  if (!shared || shared->empty()) return std::string(text);
  std::string out;
  for (const std::string_view line : lines) {
    const bool blank = line.find_first_not_of(" \t") == std::string_view::npos;
    out += blank ? std::string_view() : line.substr(shared->size());
    out += '\n';
  }
  return out;
}

}  // namespace fixpoint::agent::detail
