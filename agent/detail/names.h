#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "agent/escalation.h"
#include "agent/journal.h"

namespace fixpoint::agent::detail {

/// The one list of names of an enumeration, in the order of its values.
template <class E>
struct Names;

template <>
struct Names<CheckStatus> {
  static constexpr std::array<std::string_view, 8> values{"passed",       "wrong_answer", "runtime_error", "compile_error",
                                                          "time_limit",   "memory_limit", "output_limit",  "forbidden"};
};
template <>
struct Names<CheckError::Kind> {
  static constexpr std::array<std::string_view, 3> values{"cancelled", "unsupported", "infrastructure"};
};
template <>
struct Names<Finish> {
  static constexpr std::array<std::string_view, 2> values{"stop", "length"};
};
template <>
struct Names<GenerateError::Kind> {
  static constexpr std::array<std::string_view, 7> values{"cancelled", "timeout",   "too_long", "unavailable",
                                                          "refused",   "malformed", "exhausted"};
};
template <>
struct Names<Purpose> {
  static constexpr std::array<std::string_view, 6> values{"draft", "repair", "review", "own_tests", "explanation", "hand"};
};
template <>
struct Names<Writer> {
  static constexpr std::array<std::string_view, 4> values{"model", "specialist", "explainer", "person"};
};
template <>
struct Names<ExtractKind> {
  static constexpr std::array<std::string_view, 7> values{
      "none", "fenced", "unclosed_fence", "other_language", "repaired_header", "whole_text", "unfenced_code"};
};
template <>
struct Names<Resource> {
  static constexpr std::array<std::string_view, 4> values{"rounds", "tokens", "wall", "sandbox"};
};
template <>
struct Names<RungKind> {
  static constexpr std::array<std::string_view, 4> values{"branch", "specialist", "explainer", "person"};
};
template <>
struct Names<StuckReason> {
  static constexpr std::array<std::string_view, 3> values{"same_program", "same_failure", "oscillation"};
};
template <>
struct Names<Outcome> {
  static constexpr std::array<std::string_view, 7> values{"solved", "handed_over", "budget_exhausted", "stuck",
                                                          "declined", "cancelled", "failed"};
};
template <>
struct Names<Basis> {
  static constexpr std::array<std::string_view, 5> values{"none", "tests", "own_tests", "review", "person"};
};
template <>
struct Names<TestOrigin> {
  static constexpr std::array<std::string_view, 3> values{"given", "doctest", "model"};
};
template <>
struct Names<EscalationState> {
  static constexpr std::array<std::string_view, 5> values{"open", "claimed", "returned", "solved_by_hand", "declined"};
};

template <class E>
[[nodiscard]] constexpr std::string_view name_of(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < Names<E>::values.size() ? Names<E>::values[index] : std::string_view("unknown");
}

template <class E>
[[nodiscard]] constexpr std::optional<E> value_of(std::string_view name) {
  for (std::size_t i = 0; i < Names<E>::values.size(); ++i) {
    if (Names<E>::values[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace fixpoint::agent::detail
