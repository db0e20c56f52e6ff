#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// The suffix automaton of a growing text (Blumer et al., 1985): at every moment it knows the longest end of the text
/// that occurs earlier in it, and the newest place where. Amortised O(1) a token; about 100 bytes each.
///
/// The newest place is exact while a match goes on. When one breaks, the new one's is as new as the last visit to its
/// state, and a token visits the `visited_states` longest of the states whose strings end with it: more than that many
/// only end together in text that repeats itself with a short period, where an older place says the same.
class SuffixAutomaton {
 public:
  SuffixAutomaton();

  void push(TokenId token);

  [[nodiscard]] std::span<const TokenId> text() const { return text_; }
  /// Length of the longest end of the text that occurs earlier (it may overlap itself).
  [[nodiscard]] int match_length() const { return match_length_; }
  /// Where that earlier occurrence ends: text()[match_end()] followed it. Less than the text's length.
  [[nodiscard]] int match_end() const { return match_end_; }
  /// What followed the earlier occurrence, `count` tokens; where that runs into the text's end, it is repeated.
  [[nodiscard]] std::vector<TokenId> continuation(int count) const;

 private:
  static constexpr int visited_states = 64;
  struct State {
    std::int32_t length = 0;       // of its longest string
    std::int32_t link = -1;
    std::int32_t last_end = 0;     // where its strings ended last, as far as visited
    std::int32_t first_edge = -1;
  };
  struct Edge {
    std::int32_t from = 0;
    TokenId token = 0;
    std::int32_t to = 0;
    std::int32_t next = -1;        // of the same state
  };

  [[nodiscard]] State& state(std::int32_t id) { return states_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Edge* find(std::int32_t from, TokenId token);
  [[nodiscard]] std::size_t slot_of(std::int32_t from, TokenId token) const;
  void add_edge(std::int32_t from, TokenId token, std::int32_t to);
  void grow_slots();
  std::int32_t add_state(State state);
  std::int32_t split(std::int32_t parent, TokenId token, std::int32_t child);
  std::int32_t extend(TokenId token);

  std::vector<TokenId> text_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  static constexpr std::size_t first_slots = 64;

  std::vector<std::int32_t> slots_;  // open addressing by (from, token): index of an edge, or -1; a power of two of them
  std::int32_t last_ = 0;
  int match_length_ = 0, match_end_ = 0;
};

}  // namespace fixpoint::engine::detail
