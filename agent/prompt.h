#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/progress.h"

namespace fixpoint::agent {

/// Every word that a model reads stands in prompt.cpp; this names its edition, and is recorded with each session. The
/// embedded model is trained on these bytes: a change of wording is a new edition.
inline constexpr std::string_view kPromptVersion = "fixpoint-2";

/// The first user message: the statement, context files, the first tests, the form of the answer. The same for every
/// round of a session, so that a prefix cache serves it.
[[nodiscard]] std::string task_message(const Task& task);

/// What a repair is told about an attempt: the verdict, the failing tests, the trace, advice, and what to answer.
[[nodiscard]] std::string feedback_message(const Round& attempt, const FeedbackKinds& kinds, std::string_view advice,
                                           Writer adviser);

/// No tests: the model reads its program against the statement.
[[nodiscard]] std::string review_message(std::string_view advice, Writer adviser);
/// Whether a review without a new program accepted the old one.
[[nodiscard]] bool review_accepts(std::string_view text);

/// Asks for assertions; stands alone, so that the tests do not follow from a program.
[[nodiscard]] std::string own_tests_message(const Task& task);
/// Asks the explainer for words only.
[[nodiscard]] std::string explain_message(const Round& attempt, const FeedbackKinds& kinds);

/// "def NAME" after a Python fence; nothing for other languages, or where no function is named.
[[nodiscard]] std::optional<ProgramStart> program_start(const Task& task);

/// A model's answer as the prompts after it hold it: cut in the middle where it is very long.
[[nodiscard]] std::string answer_in_history(std::string_view text);

/// The whole prompt of an attempt: its ancestors' questions and answers, then its own question.
[[nodiscard]] std::vector<Message> messages_for(const Progress& progress, const Ask& ask);

/// SHA-256 (hex) of the messages, each as role, length and bytes.
[[nodiscard]] std::string prompt_sha256(const std::vector<Message>& messages);

/// `text` whole, or its head and tail with the number of bytes left out between them; cut at characters, never longer
/// than `max_bytes` plus that note.
[[nodiscard]] std::string bounded(std::string_view text, std::size_t max_bytes);

}  // namespace fixpoint::agent
