#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Where each run of `n` tokens of a text ended last before its end. O(1) a token.
class NgramIndex {
 public:
  explicit NgramIndex(int n) : n_(static_cast<std::size_t>(n)) {}

  /// Takes note of what `text`'s last token followed. Each call's text begins with the last call's, and is one longer.
  void push(std::span<const TokenId> text);
  /// Where the run that `tail` ends with ended last in `text` and was followed: by text[*it].
  [[nodiscard]] std::optional<std::size_t> find(std::span<const TokenId> text, std::span<const TokenId> tail) const;

 private:
  [[nodiscard]] std::size_t slot_of(std::span<const TokenId> text, std::span<const TokenId> run) const;
  void grow(std::span<const TokenId> text);

  std::size_t n_;
  std::size_t used_ = 0;
  static constexpr std::size_t first_slots = 64;

  std::vector<std::int32_t> slots_;  // open addressing: end of a run, or 0; a power of two of them
};

}  // namespace fixpoint::engine::detail
