#include "engine/detail/suffix_automaton.h"

#include "engine/counter_rng.h"

namespace fixpoint::engine::detail {

SuffixAutomaton::SuffixAutomaton() : states_(1), slots_(first_slots, -1) {}

/// The slot of the edge, or the free one where it belongs.
std::size_t SuffixAutomaton::slot_of(std::int32_t from, TokenId token) const {
  const auto key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32U) | static_cast<std::uint32_t>(token);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(mix64(key)) & mask;
  while (slots_[slot] >= 0) {
    const Edge& edge = edges_[static_cast<std::size_t>(slots_[slot])];
    if (edge.from == from && edge.token == token) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

SuffixAutomaton::Edge* SuffixAutomaton::find(std::int32_t from, TokenId token) {
  const std::int32_t edge = slots_[slot_of(from, token)];
  return edge < 0 ? nullptr : &edges_[static_cast<std::size_t>(edge)];
}

void SuffixAutomaton::add_edge(std::int32_t from, TokenId token, std::int32_t to) {
  if ((edges_.size() + 1) * 2 > slots_.size()) grow_slots();
  slots_[slot_of(from, token)] = static_cast<std::int32_t>(edges_.size());
  edges_.push_back({from, token, to, state(from).first_edge});
  state(from).first_edge = static_cast<std::int32_t>(edges_.size()) - 1;
}

void SuffixAutomaton::grow_slots() {
  slots_.assign(slots_.size() * 2, -1);
  for (std::size_t i = 0; i < edges_.size(); ++i) slots_[slot_of(edges_[i].from, edges_[i].token)] = static_cast<std::int32_t>(i);
}

std::int32_t SuffixAutomaton::add_state(State state) {
  states_.push_back(state);
  return static_cast<std::int32_t>(states_.size()) - 1;
}

/// A copy of `child` for those of its strings that `parent` and `token` make: they occur where the others do not.
std::int32_t SuffixAutomaton::split(std::int32_t parent, TokenId token, std::int32_t child) {
  const std::int32_t copy = add_state({state(parent).length + 1, state(child).link, state(child).last_end, -1});
  for (std::int32_t e = state(child).first_edge; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
    const Edge edge = edges_[static_cast<std::size_t>(e)];
    add_edge(copy, edge.token, edge.to);
  }
  for (std::int32_t p = parent; p >= 0; p = state(p).link) {
    Edge* edge = find(p, token);
    if (edge == nullptr || edge->to != child) break;
    edge->to = copy;
  }
  state(child).link = copy;
  return copy;
}

/// The state of the whole text with `token` at its end.
std::int32_t SuffixAutomaton::extend(TokenId token) {
  const std::int32_t whole = add_state({state(last_).length + 1, 0, 0, -1});
  std::int32_t p = last_;
  Edge* edge = nullptr;
  for (; p >= 0 && (edge = find(p, token)) == nullptr; p = state(p).link) add_edge(p, token, whole);
  if (p >= 0) {
    const std::int32_t child = edge->to;
    const std::int32_t link = state(p).length + 1 == state(child).length ? child : split(p, token, child);
    state(whole).link = link;
  }
  return whole;
}

void SuffixAutomaton::push(TokenId token) {
  last_ = extend(token);
  // If the earlier occurrence went on like this, the longer match is the longest, and its newest place is the next one.
  if (match_length_ > 0 && text_[static_cast<std::size_t>(match_end_)] == token) {
    ++match_length_;
    ++match_end_;
  } else {
    const State& longest_repeated = state(state(last_).link);
    match_length_ = longest_repeated.length;
    match_end_ = longest_repeated.last_end;
  }
  text_.push_back(token);
  const auto end = static_cast<std::int32_t>(text_.size());
  std::int32_t visited = last_;
  for (int i = 0; i < visited_states && visited > 0; ++i, visited = state(visited).link) state(visited).last_end = end;
}

std::vector<TokenId> SuffixAutomaton::continuation(int count) const {
  std::vector<TokenId> tokens;
  if (match_length_ == 0) return tokens;
  const auto period = text_.size() - static_cast<std::size_t>(match_end_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    tokens.push_back(i < period ? text_[static_cast<std::size_t>(match_end_) + i] : tokens[i - period]);
  }
  return tokens;
}

}  // namespace fixpoint::engine::detail
