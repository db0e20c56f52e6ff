#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Follows an output through an earlier version of it. While both agree, what comes next in the earlier version is the
/// guess. After an edit it finds its place again: within the line and those near it by the tokens just written, at the
/// end of a line by the line as a whole, and failing both it supposes that one line stands for one line.
/// Cost of a token: O(1) while both agree, else O(window).
class EditCursor {
 public:
  /// `line_ends`: by token id; must outlive the cursor.
  EditCursor(std::vector<TokenId> previous, const std::vector<bool>& line_ends);

  /// `output` so far; its last token is the new one.
  void advance(std::span<const TokenId> output);
  /// What follows the cursor in the previous version; nothing while its place is not known.
  [[nodiscard]] std::span<const TokenId> next() const;
  /// Tokens that have agreed since the place was found; 0: it is supposed.
  [[nodiscard]] int matched() const { return matched_; }

 private:
  [[nodiscard]] bool ends_line(TokenId token) const;
  [[nodiscard]] std::size_t line_of(std::size_t position) const;
  [[nodiscard]] std::size_t begin_of_line(std::size_t line) const;
  [[nodiscard]] std::span<const TokenId> line(std::size_t index) const;
  void lose();
  bool find_near(std::span<const TokenId> output);
  bool find_line(std::span<const TokenId> written);
  void suppose();
  void stand_at(std::size_t position, int matched);

  std::vector<TokenId> previous_;
  const std::vector<bool>* line_ends_;
  std::vector<std::size_t> line_begins_;  // of previous_; ascending
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> lines_;  // hash -> lines that have it, ascending

  bool found_ = true;            // whether at_ is a place to draft from
  std::size_t at_ = 0;
  int matched_ = 0;
  std::size_t edit_ = 0;         // where the versions parted
  std::size_t since_edit_ = 0;   // tokens written since then, the first that differed included
  std::size_t supposed_ = 0;     // where the output may go on when its line ends
  bool ever_matched_ = false;
  std::size_t line_start_ = 0;   // of the output's unfinished line
};

}  // namespace fixpoint::engine::detail
