#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::agent::detail {

/// A fenced block of Markdown.
struct Fence {
  std::string info;      ///< the text after the opening marks, trimmed: "python", "python title=x"
  std::string content;   ///< lines with LF ends, the fence's own indentation removed
  bool closed = false;
  std::size_t begin = 0; ///< offset of the opening line
  std::size_t end = 0;   ///< offset behind the closing line, or the text's end
};

/// All blocks of `text` (LF line ends), in order. A fence inside a Python triple-quoted string does not close a block; an
/// opening line with an info word does, as a model that forgot to close writes it. Linear in the text.
[[nodiscard]] std::vector<Fence> find_fences(std::string_view text);

/// `content` as a block, without the end of its last line; the fence is longer than any in it.
[[nodiscard]] std::string fenced(std::string_view info, std::string_view content);

/// First word of the info, in lower case.
[[nodiscard]] std::string fence_language(const Fence& fence);

/// Lines without their ends; a last empty line is not one.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);
/// CRLF and CR become LF.
[[nodiscard]] std::string unix_lines(std::string_view text);
/// Leading blanks that all lines with content share are removed.
[[nodiscard]] std::string dedented(std::string_view text);

}  // namespace fixpoint::agent::detail
