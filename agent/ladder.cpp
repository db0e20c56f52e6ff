#include <algorithm>
#include <charconv>

#include "agent/detail/names.h"
#include "agent/escalation.h"

namespace fixpoint::agent {

tl::expected<std::vector<Rung>, std::string> parse_ladder(std::string_view text) {
  const auto number = [](std::string_view digits, int most) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    return whole && value >= 0 && value <= most ? std::optional(value) : std::nullopt;
  };
  std::vector<Rung> ladder;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t colon = std::min(word.find(':'), word.size());
    const auto kind = detail::value_of<RungKind>(word.substr(0, colon));
    if (!kind) return tl::unexpected("'" + std::string(word) + "': not branch, explainer, specialist or person");
    Rung rung{.kind = *kind, .attempts = 1};
    if (colon < word.size()) {
      const std::string_view amounts = word.substr(colon + 1);
      const std::size_t plus = std::min(amounts.find('+'), amounts.size());
      const auto attempts = number(amounts.substr(0, plus), 16);
      const auto rounds = plus < amounts.size() ? number(amounts.substr(plus + 1), kMaxRounds) : std::optional(0);
      if (!attempts || *attempts == 0) return tl::unexpected("'" + std::string(word) + "': attempts must be a number from 1 to 16");
      if (!rounds) return tl::unexpected("'" + std::string(word) + "': granted rounds must be a number from 0 to " + std::to_string(kMaxRounds));
      rung.attempts = *attempts;
      rung.grant.rounds = *rounds;
    }
    if (!ladder.empty() && ladder.back().kind == RungKind::person) return tl::unexpected("'" + std::string(word) + "': a person comes last");
    ladder.push_back(rung);
  }
  return ladder;
}

}  // namespace fixpoint::agent
