#include "engine/detail/edit_cursor.h"

#include <algorithm>
#include <utility>

#include "engine/counter_rng.h"

namespace fixpoint::engine::detail {
namespace {

// Where to look for the place after an edit: tokens before and after the point where the versions parted.
constexpr std::size_t look_back = 16, look_ahead = 64;
constexpr std::size_t longest_match = 16;
constexpr std::size_t shortest_match = 2;  // of tokens, away from where replaced tokens would lead …
constexpr std::size_t most_replaced = 8;   // … and so many of those at most

std::uint64_t hash_of(std::span<const TokenId> tokens) {
  std::uint64_t hash = tokens.size();
  for (const TokenId token : tokens) hash = mix64(hash ^ static_cast<std::uint64_t>(token));
  return hash;
}

/// How many of the last tokens of `a` and `b` agree, up to `longest_match`.
std::size_t common_end(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t most = std::min({a.size(), b.size(), longest_match});
  std::size_t n = 0;
  while (n < most && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

std::size_t distance(std::size_t a, std::size_t b) { return a < b ? b - a : a - b; }

}  // namespace

EditCursor::EditCursor(std::vector<TokenId> previous, const std::vector<bool>& line_ends)
    : previous_(std::move(previous)), line_ends_(&line_ends) {
  for (std::size_t i = 0, begin = 0; i < previous_.size(); ++i) {
    if (i == begin) line_begins_.push_back(begin);
    if (ends_line(previous_[i])) begin = i + 1;
  }
  for (std::size_t i = 0; i < line_begins_.size(); ++i) lines_[hash_of(line(i))].push_back(i);
}

bool EditCursor::ends_line(TokenId token) const {
  const auto id = static_cast<std::size_t>(token);
  return id < line_ends_->size() && (*line_ends_)[id];
}

std::size_t EditCursor::line_of(std::size_t position) const {
  const auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), position);
  return after == line_begins_.begin() ? 0 : static_cast<std::size_t>(after - line_begins_.begin()) - 1;
}

std::size_t EditCursor::begin_of_line(std::size_t line) const {
  return line < line_begins_.size() ? line_begins_[line] : previous_.size();
}

std::span<const TokenId> EditCursor::line(std::size_t index) const {
  const std::size_t begin = begin_of_line(index);
  return std::span(previous_).subspan(begin, begin_of_line(index + 1) - begin);
}

std::span<const TokenId> EditCursor::next() const {
  return found_ ? std::span(previous_).subspan(at_) : std::span<const TokenId>();
}

void EditCursor::stand_at(std::size_t position, int matched) {
  found_ = true;
  at_ = position;
  matched_ = matched;
  ever_matched_ = ever_matched_ || matched > 0;
}

void EditCursor::advance(std::span<const TokenId> output) {
  const TokenId token = output.back();
  if (found_ && at_ < previous_.size() && previous_[at_] == token) {
    stand_at(at_ + 1, matched_ + 1);
  } else {
    if (found_) lose();
    ++since_edit_;
    find_near(output);
  }
  if (!ends_line(token)) return;
  // A place that was found within the line is worth less than a line that is the same as a whole.
  const auto written = output.subspan(line_start_);
  const bool sure = found_ && static_cast<std::size_t>(matched_) >= written.size();
  if (!sure && !find_line(written) && !found_) suppose();
  line_start_ = output.size();
}

void EditCursor::lose() {
  found_ = false;
  // A place that was only supposed and led nowhere tells nothing: what was supposed to come may still come.
  if (matched_ == 0) return;
  edit_ = at_;
  since_edit_ = 0;
  supposed_ = begin_of_line(line_of(at_) + 1);
  matched_ = 0;
}

/// By the tokens just written: the place near the edit that most of them lead to, the nearest to where replacing tokens
/// one by one would lead. There a single token is enough.
bool EditCursor::find_near(std::span<const TokenId> output) {
  const std::size_t replaced = edit_ + since_edit_;
  const std::size_t from = edit_ > look_back ? edit_ - look_back : 0;
  const std::size_t to = std::min(previous_.size(), edit_ + look_ahead);
  std::size_t best = 0, place = 0;
  for (std::size_t position = from + 1; position <= to; ++position) {
    if (previous_[position - 1] != output.back()) continue;
    const std::size_t common = common_end(output, std::span(previous_).first(position));
    const bool enough = common >= shortest_match || (position == replaced && since_edit_ > 1 && since_edit_ <= most_replaced + 1);
    if (!enough || common < best || (common == best && distance(position, replaced) >= distance(place, replaced))) continue;
    best = common;
    place = position;
  }
  if (best > 0) stand_at(place, static_cast<int>(best));
  return best > 0;
}

/// By the line just written: behind the line like it that is nearest after the edit, else behind the last one before it.
bool EditCursor::find_line(std::span<const TokenId> written) {
  if (written.size() < shortest_match) return false;
  const auto found = lines_.find(hash_of(written));
  if (found == lines_.end()) return false;
  const auto& candidates = found->second;
  auto nearest = std::lower_bound(candidates.begin(), candidates.end(), line_of(edit_));
  if (nearest == candidates.end()) --nearest;
  if (!std::equal(written.begin(), written.end(), line(*nearest).begin(), line(*nearest).end())) return false;
  stand_at(begin_of_line(*nearest + 1), static_cast<int>(std::min(written.size(), longest_match)));
  return true;
}

/// The line that was written stands for the one in which the versions parted.
void EditCursor::suppose() {
  if (ever_matched_) stand_at(supposed_, 0);
}

}  // namespace fixpoint::engine::detail
