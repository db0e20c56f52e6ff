#include "agent/prompt.h"

#include <algorithm>

#include "agent/detail/digest.h"
#include "agent/detail/fences.h"
#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

// Bounds of quoted text, in bytes. They are part of the edition, as the words are.
constexpr std::size_t kStatementBytes = 32'768;
constexpr std::size_t kContextFileBytes = 8'192;
constexpr std::size_t kContextBytes = 32'768;
constexpr std::size_t kTestBytes = 1'000;
constexpr std::size_t kCodeTestBytes = 4'000;
constexpr std::size_t kValueBytes = 400;
constexpr std::size_t kMessageBytes = 800;
constexpr std::size_t kTraceLineBytes = 160;
constexpr std::size_t kAdviceBytes = 4'000;
constexpr std::size_t kAnswerBytes = 16'384;

void add_line(std::string& text, std::string_view line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

std::string shown_test(const Test& test, const Task& task) {
  struct Visitor {
    const Task& task;
    std::string operator()(const Assertion& it) const { return bounded(it.code, kTestBytes); }
    std::string operator()(const StdioCase& it) const {
      return "Input:\n" + detail::fenced("", bounded(it.input, kTestBytes)) + "\nOutput:\n" +
             detail::fenced("", bounded(it.output, kTestBytes));
    }
    std::string operator()(const CheckFunction& it) const {
      return detail::fenced(task.language, bounded(it.code, kCodeTestBytes));
    }
    std::string operator()(const TestFile& it) const {
      return "`" + it.name + "`:\n" + detail::fenced(task.language, bounded(it.content, kCodeTestBytes));
    }
  };
  return std::visit(Visitor{task}, test.body);
}

std::string_view headline(const Round& attempt) {
  if (!attempt.judgement) {
    if (attempt.program.empty()) {
      return attempt.finish == Finish::length ? "The answer was cut off." : "No program was found in the answer.";
    }
    return "The program was not run.";
  }
  switch (attempt.judgement->status) {
    case CheckStatus::passed: return "The tests passed.";
    case CheckStatus::wrong_answer: return "The tests failed.";
    case CheckStatus::runtime_error:
      return attempt.judgement->failures.empty() ? "The program crashed." : "The tests failed.";
    case CheckStatus::compile_error: return "The program does not compile.";
    case CheckStatus::time_limit: return "The program took too long.";
    case CheckStatus::memory_limit: return "The program used too much memory.";
    case CheckStatus::output_limit: return "The program printed too much.";
    case CheckStatus::forbidden: return "The program did something that is not allowed.";
  }
  return "The tests failed.";
}

void add_failed_test(std::string& text, const FailedTest& failure) {
  if (!failure.input.empty()) {
    add_line(text, "Input:\n" + detail::fenced("", bounded(failure.input, kValueBytes)));
  } else if (!failure.test.empty()) {
    add_line(text, bounded(failure.test, kTestBytes));
  }
  if (!failure.expected.empty()) {
    add_line(text, failure.input.empty() ? "expected " + bounded(failure.expected, kValueBytes)
                                         : "Output:\n" + detail::fenced("", bounded(failure.expected, kValueBytes)));
  }
  if (!failure.error.empty()) {
    add_line(text, "raised " + bounded(failure.error, kMessageBytes));
  } else if (!failure.input.empty()) {
    add_line(text, "Got:\n" + detail::fenced("", bounded(failure.actual, kValueBytes)));
  } else if (!failure.actual.empty()) {
    add_line(text, "got " + bounded(failure.actual, kValueBytes));
  }
  if (!failure.difference.empty()) add_line(text, "difference: " + bounded(failure.difference, kValueBytes));
}

void add_trace(std::string& text, const Judgement& judgement) {
  if (judgement.trace.empty()) return;
  add_line(text, "trace:");
  for (std::size_t i = 0; i < judgement.trace.size(); ++i) {
    if (judgement.trace_left_out > 0 && static_cast<int>(i) == judgement.trace_head) {
      add_line(text, "... " + std::to_string(judgement.trace_left_out) + " lines left out");
    }
    const TraceLine& line = judgement.trace[i];
    std::string shown = bounded(line.source, kTraceLineBytes);
    if (!line.effect.empty()) shown += "  # " + bounded(line.effect, kTraceLineBytes);
    add_line(text, shown);
  }
}

void add_advice(std::string& text, std::string_view advice, Writer adviser) {
  if (advice.empty()) return;
  add_line(text, adviser == Writer::person ? "Hint: " : "A reviewer says: ");
  text += bounded(detail::trimmed(advice), kAdviceBytes);
}

std::string facts(const Round& attempt, const FeedbackKinds& kinds) {
  std::string text(headline(attempt));
  if (!attempt.judgement) return text;
  const Judgement& judgement = *attempt.judgement;
  if (kinds.unit_test) {
    for (const FailedTest& failure : judgement.failures) add_failed_test(text, failure);
    if (judgement.failures.empty() && !judgement.message.empty()) {
      add_line(text, bounded(detail::trimmed(judgement.message), kMessageBytes));
    }
  }
  if (kinds.trace) add_trace(text, judgement);
  return text;
}

std::string answer_of(const Round& attempt, std::string_view language) {
  if (attempt.ask.purpose == Purpose::hand) return detail::fenced(language, attempt.program);
  return answer_in_history(attempt.text);
}

/// What stands before an attempt's own question: its parent's conversation and answer.
void add_history(const Progress& progress, const Ask& ask, std::vector<Message>& messages) {
  if (!ask.parent) return;
  const Round& parent = progress.attempts[static_cast<std::size_t>(*ask.parent)];
  if (ask.whole_history) {
    add_history(progress, parent.ask, messages);
    messages.push_back({Role::user, parent.ask.user_text});
  } else {
    messages.push_back({Role::user, task_message(progress.task)});
  }
  messages.push_back({Role::assistant, answer_of(parent, progress.task.language)});
}

}  // namespace

std::string bounded(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const std::size_t head = detail::floor_character(text, max_bytes * 2 / 3);
  const std::size_t tail = detail::ceil_character(text, text.size() - max_bytes / 3);
  std::string out(text.substr(0, head));
  out += "... " + std::to_string(tail - head) + " bytes left out ...";
  out += text.substr(tail);
  return out;
}

std::string task_message(const Task& task) {
  std::string text = bounded(detail::trimmed(task.statement), kStatementBytes);
  std::size_t context_bytes = 0;
  for (const ContextFile& file : task.context) {
    const std::string content = bounded(file.content, std::min(kContextFileBytes, kContextBytes - context_bytes));
    context_bytes = std::min(kContextBytes, context_bytes + content.size());
    add_line(text, "`" + file.path + "`:\n" + detail::fenced(language_of_file(file.path), content));
  }
  int shown = 0;
  for (const Test& test : task.visible) {
    if (test.origin != TestOrigin::given || shown == task.shown_tests) continue;
    ++shown;
    add_line(text, shown_test(test, task));
  }
  add_line(text, "Answer with one fenced " + language_title(task.language) + " program.");
  return text;
}

std::string feedback_message(const Round& attempt, const FeedbackKinds& kinds, std::string_view advice, Writer adviser) {
  std::string text = facts(attempt, kinds);
  add_advice(text, advice, adviser);
  add_line(text, kinds.explanation ? "Explain what is wrong, then answer with the corrected program."
                                   : "Answer with the corrected program.");
  return text;
}

std::string review_message(std::string_view advice, Writer adviser) {
  std::string text = "There are no tests.";
  add_advice(text, advice, adviser);
  add_line(text,
           "Explain what the program does and compare it with the task. If it is right, end with the word CORRECT. "
           "If not, answer with the corrected program.");
  return text;
}

bool review_accepts(std::string_view text) {
  text = detail::trimmed(text);
  while (!text.empty() && std::string_view(".!*`").find(text.back()) != std::string_view::npos) text.remove_suffix(1);
  constexpr std::string_view kWord = "CORRECT";
  if (!text.ends_with(kWord)) return false;
  text.remove_suffix(kWord.size());
  // "INCORRECT" and "NOT CORRECT" are the opposite.
  if (text.empty()) return true;
  const char before = text.back();
  if ((before >= 'A' && before <= 'Z') || (before >= 'a' && before <= 'z')) return false;
  text = detail::trimmed(text);
  return !text.ends_with("NOT") && !text.ends_with("not") && !text.ends_with("Not");
}

std::string own_tests_message(const Task& task) {
  std::string text = bounded(detail::trimmed(task.statement), kStatementBytes);
  add_line(text, "Write four `assert` statements that test `" + task.entry_point +
                     "`, each on a line of its own. Write nothing else.");
  return text;
}

std::string explain_message(const Round& attempt, const FeedbackKinds& kinds) {
  std::string text = facts(attempt, kinds);
  add_line(text, "Explain in a few sentences what is wrong. Do not write a program.");
  return text;
}

std::optional<ProgramStart> program_start(const Task& task) {
  if (task.language != "python" || task.entry_point.empty()) return std::nullopt;
  const bool plain = std::all_of(task.entry_point.begin(), task.entry_point.end(), detail::is_identifier_character);
  if (!plain) return std::nullopt;  // a method, "Solution.solve"
  return ProgramStart{.fence = "```python\n", .text = "def " + task.entry_point};
}

std::string answer_in_history(std::string_view text) { return text.empty() ? "(no answer)" : bounded(text, kAnswerBytes); }

std::vector<Message> messages_for(const Progress& progress, const Ask& ask) {
  std::vector<Message> messages;
  add_history(progress, ask, messages);
  messages.push_back({Role::user, ask.user_text});
  return messages;
}

std::string prompt_sha256(const std::vector<Message>& messages) {
  std::string bytes;
  for (const Message& message : messages) {
    bytes += message.role == Role::user ? "user " : message.role == Role::assistant ? "assistant " : "system ";
    bytes += std::to_string(message.content.size()) + "\n" + message.content + "\n";
  }
  return detail::sha256_hex(bytes);
}

}  // namespace fixpoint::agent
