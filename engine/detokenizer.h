#pragma once

#include <string>
#include <vector>

#include "engine/tokenizer.h"

namespace fixpoint::engine {

/// Tokens in, text out, piece by piece. What it has given out is always valid UTF-8 (bytes that can't become a character
/// are replaced by U+FFFD) and never holds a part of a stop string: text that may still grow into one is held back.
/// The pieces, joined, are the text of all tokens up to the stop string.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, std::vector<std::string> stop_strings);

  struct Piece {
    std::string text;
    bool stopped = false;  ///< a stop string was met; the text ends before it
  };

  [[nodiscard]] Piece push(TokenId token);
  /// What was still held back. Call once, at the end.
  [[nodiscard]] std::string finish();
  /// The stop string that was met; empty if none was.
  [[nodiscard]] const std::string& matched_stop() const { return matched_stop_; }

 private:
  const Tokenizer* tokenizer_;
  std::vector<std::string> stop_strings_;
  std::string pending_;  ///< bytes not given out yet
  std::string matched_stop_;
};

}  // namespace fixpoint::engine
