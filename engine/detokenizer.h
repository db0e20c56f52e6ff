#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer.h"

namespace fixpoint::engine {

/// Tokens in, text out, piece by piece: text that continues a prompt, so a leading space stays. What it has given out is
/// always valid UTF-8 (bytes that can't become a character are replaced by U+FFFD, as in decoding the whole at once) and
/// never holds a part of a stop string: the longest end of the text that begins one is held back, and no more.
/// The pieces, joined, are the text of all tokens up to the stop string. How the text is cut into tokens changes nothing
/// about it: the stop string that is complete first counts, of those that end together the longest.
/// Cost: O(bytes * stop strings) over the whole text. One thread at a time.
class Detokenizer {
 public:
  /// `tokenizer` must outlive the detokenizer. Empty stop strings are ignored.
  Detokenizer(const Tokenizer& tokenizer, std::vector<std::string> stop_strings);

  struct Piece {
    std::string text;
    bool stopped = false;  ///< a stop string was met; the text ends before it
  };

  /// After a stop string, pieces are empty and `stopped`.
  [[nodiscard]] Piece push(TokenId token);
  /// What was still held back. Call once, at the end. An unfinished character at the end may still complete a stop string
  /// that holds U+FFFD; matched_stop() tells.
  [[nodiscard]] std::string finish();
  /// The stop string that was met; empty if none was.
  [[nodiscard]] const std::string& matched_stop() const { return matched_stop_; }

 private:
  /// One stop string and how much of it the end of the text matches (Knuth, Morris, Pratt).
  struct Stop {
    std::string given;
    std::string text;                      ///< `given` as valid UTF-8
    std::vector<std::uint32_t> fallbacks;  ///< [i]: length of the longest proper prefix that text[0, i] ends with
    std::size_t matched = 0;

    explicit Stop(std::string stop_string);
    [[nodiscard]] bool advance(char byte);
  };

  /// Whole characters of `incomplete_` and `bytes` go to `held_`; the bytes of an unfinished one stay.
  void decode(std::string_view bytes, bool at_end);
  /// Moves `held_`, from `fresh` on not looked at yet, through the stop strings.
  [[nodiscard]] Piece release(std::size_t fresh);
  /// `held_` up to `end`, which is then no longer held.
  [[nodiscard]] std::string give(std::size_t end);

  const Tokenizer* tokenizer_;
  std::vector<Stop> stops_;
  std::string incomplete_;  ///< up to 3 bytes that may become a character
  std::string held_;        ///< from held_from_ on: text that may grow into a stop string
  std::size_t held_from_ = 0;
  std::string matched_stop_;
};

}  // namespace fixpoint::engine
