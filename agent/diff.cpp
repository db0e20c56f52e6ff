#include "agent/diff.h"

#include <algorithm>

#include "agent/detail/fences.h"

namespace fixpoint::agent {
namespace {

using Lines = std::vector<std::string_view>;
constexpr std::size_t kMaxTable = 4'000'000;

/// The lines between the common ends, as removals and additions of a longest common subsequence.
void diff_middle(const Lines& a, const Lines& b, std::vector<DiffLine>& out) {
  const std::size_t n = a.size(), m = b.size();
  if (n * m > kMaxTable) {
    for (const auto line : a) out.push_back({DiffLine::Kind::removed, std::string(line)});
    for (const auto line : b) out.push_back({DiffLine::Kind::added, std::string(line)});
    return;
  }
  std::vector<std::uint32_t> common((n + 1) * (m + 1), 0);  // [n+1, m+1]: of the suffixes
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return common[i * (m + 1) + j]; };
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  }
  std::size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[i] == b[j]) {
      out.push_back({DiffLine::Kind::same, std::string(a[i++])});
      ++j;
    } else if (i < n && (j == m || at(i + 1, j) >= at(i, j + 1))) {
      out.push_back({DiffLine::Kind::removed, std::string(a[i++])});
    } else {
      out.push_back({DiffLine::Kind::added, std::string(b[j++])});
    }
  }
}

/// Unchanged lines further than `context` from every change become gaps.
std::vector<DiffLine> around_changes(std::vector<DiffLine> all, int context) {
  std::vector<bool> keep(all.size(), false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == DiffLine::Kind::same) continue;
    const std::size_t from = i >= static_cast<std::size_t>(context) ? i - static_cast<std::size_t>(context) : 0;
    const std::size_t to = std::min(all.size(), i + static_cast<std::size_t>(context) + 1);
    std::fill(keep.begin() + static_cast<std::ptrdiff_t>(from), keep.begin() + static_cast<std::ptrdiff_t>(to), true);
  }
  std::vector<DiffLine> shown;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (keep[i]) {
      shown.push_back(std::move(all[i]));
    } else if (shown.empty() || shown.back().kind != DiffLine::Kind::gap) {
      shown.push_back({DiffLine::Kind::gap, {}});
    }
  }
  return shown;
}

}  // namespace

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after, int context) {
  Lines a = detail::split_lines(before), b = detail::split_lines(after);
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  if (head == a.size() && head == b.size()) return {};
  std::vector<DiffLine> all;
  for (std::size_t i = 0; i < head; ++i) all.push_back({DiffLine::Kind::same, std::string(a[i])});
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(head), lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  diff_middle(middle(a), middle(b), all);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) all.push_back({DiffLine::Kind::same, std::string(a[i])});
  return around_changes(std::move(all), context);
}

std::string to_text(const std::vector<DiffLine>& diff) {
  std::string text;
  for (const DiffLine& line : diff) {
    switch (line.kind) {
      case DiffLine::Kind::same: text += ' '; break;
      case DiffLine::Kind::removed: text += '-'; break;
      case DiffLine::Kind::added: text += '+'; break;
      case DiffLine::Kind::gap: text += "..."; break;
    }
    text += line.text;
    text += '\n';
  }
  return text;
}

}  // namespace fixpoint::agent
