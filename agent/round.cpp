#include "agent/round.h"

#include "agent/detail/names.h"

namespace fixpoint::agent {

std::string_view to_string(CheckStatus status) { return detail::name_of(status); }
std::string_view to_string(Finish finish) { return detail::name_of(finish); }
std::string_view to_string(GenerateError::Kind kind) { return detail::name_of(kind); }
std::string_view to_string(Purpose purpose) { return detail::name_of(purpose); }
std::string_view to_string(Writer writer) { return detail::name_of(writer); }
std::string_view to_string(ExtractKind kind) { return detail::name_of(kind); }

Usage& Usage::operator+=(const Usage& other) {
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  completion_tokens += other.completion_tokens;
  return *this;
}

tl::expected<FeedbackKinds, std::string> parse_feedback(std::string_view text) {
  FeedbackKinds kinds{.unit_test = false, .explanation = false, .trace = false};
  while (!text.empty()) {
    const auto end = std::min(text.find('+'), text.size());
    const std::string_view word = text.substr(0, end);
    if (word == "unit_test") {
      kinds.unit_test = true;
    } else if (word == "explanation") {
      kinds.explanation = true;
    } else if (word == "trace") {
      kinds.trace = true;
    } else if (word != "simple") {
      return tl::unexpected("unknown feedback kind '" + std::string(word) +
                            "' (known: simple, unit_test, explanation, trace, joined by '+')");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return kinds;
}

std::string to_string(const FeedbackKinds& kinds) {
  std::string text;
  const auto add = [&text](bool on, std::string_view word) {
    if (!on) return;
    if (!text.empty()) text += '+';
    text += word;
  };
  add(kinds.unit_test, "unit_test");
  add(kinds.explanation, "explanation");
  add(kinds.trace, "trace");
  return text.empty() ? "simple" : text;
}

}  // namespace fixpoint::agent
