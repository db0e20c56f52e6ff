#include "evals/detail/line_diff.h"

#include <algorithm>
#include <cstdint>

namespace fixpoint::evals::detail {
namespace {

constexpr std::size_t kMaxLines = 2000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::vector<DiffLine> line_diff(std::string_view before, std::string_view after) {
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  std::vector<DiffLine> out;
  if (a.size() > kMaxLines || b.size() > kMaxLines) {
    for (const std::string_view line : a) out.push_back({'-', std::string(line)});
    for (const std::string_view line : b) out.push_back({'+', std::string(line)});
    return out;
  }
  // common[i][j]: the longest common subsequence of a[i…] and b[j…]
  const std::size_t width = b.size() + 1;
  std::vector<std::uint16_t> common((a.size() + 1) * width, 0);
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      common[i * width + j] = a[i] == b[j] ? static_cast<std::uint16_t>(common[(i + 1) * width + j + 1] + 1)
                                           : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', std::string(a[i++])});
      ++j;
    } else if (j == b.size() || (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      out.push_back({'-', std::string(a[i++])});
    } else {
      out.push_back({'+', std::string(b[j++])});
    }
  }
  return out;
}

}  // namespace fixpoint::evals::detail
