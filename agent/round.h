#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/budget.h"
#include "agent/checker.h"
#include "agent/generator.h"

namespace fixpoint::agent {

/// What a generation was asked for.
enum class Purpose : std::uint8_t {
  draft,        ///< a first program, or a fresh one on another branch
  repair,       ///< explanation and program, after feedback
  review,       ///< no tests: the program against the statement
  own_tests,    ///< assertions written by the model
  explanation,  ///< only words, by the explainer
  hand,         ///< nothing was generated: a person's program
};
[[nodiscard]] std::string_view to_string(Purpose purpose);

enum class Writer : std::uint8_t { model, specialist, explainer, person };
[[nodiscard]] std::string_view to_string(Writer writer);

/// How a program was found in the model's text (agent/extract.h).
enum class ExtractKind : std::uint8_t { none, fenced, unclosed_fence, other_language, repaired_header, whole_text, unfenced_code };
[[nodiscard]] std::string_view to_string(ExtractKind kind);

/// The feedback of one prompt, a set; empty means `simple`.
struct FeedbackKinds {
  bool unit_test = true;
  bool explanation = true;
  bool trace = true;
  bool operator==(const FeedbackKinds&) const = default;
};
/// "unit_test+explanation+trace", "simple"; the error names the unknown kind.
[[nodiscard]] tl::expected<FeedbackKinds, std::string> parse_feedback(std::string_view text);
[[nodiscard]] std::string to_string(const FeedbackKinds& kinds);

/// How a generation was asked for: enough to build its prompt again, byte for byte, from the attempts before it.
struct Ask {
  Purpose purpose = Purpose::draft;
  Writer writer = Writer::model;
  std::optional<int> parent;   ///< the attempt whose conversation goes on
  std::string user_text;       ///< the last user message of the prompt
  bool whole_history = true;   ///< false: only the task and the parent's text stand before it (a small context)
  FeedbackKinds feedback;
  double temperature = 0.0;
  double top_p = 1.0;
  std::uint64_t seed = 0;
  std::int64_t max_tokens = 0;
  std::string prompt_sha256;  ///< of the rendered messages (agent/prompt.h)
  bool operator==(const Ask&) const = default;
};

/// The record of one attempt: one generation and, where it gave a program, its check.
struct Round {
  int attempt = 0;  ///< index among all attempts of the session
  int number = 0;   ///< 0 for first drafts, then one a repair round
  int draft = 0;    ///< index among parallel drafts
  Ask ask;

  bool finished = false;  ///< the generation has ended, well or not
  std::string text;       ///< as the model wrote it
  Finish finish = Finish::stop;
  std::optional<GenerateError::Kind> error;
  std::string error_detail;
  Usage usage;

  ExtractKind extract = ExtractKind::none;
  std::string program;
  std::string explanation;
  std::string program_key;  ///< equal for programs that differ in comments and blanks only
  std::optional<Judgement> judgement;
  std::string failure_key;  ///< equal for failures that look the same
  Amounts cost;

  [[nodiscard]] bool passed() const {
    return judgement && judgement->status == CheckStatus::passed && judgement->passed == judgement->total;
  }
};

}  // namespace fixpoint::agent
