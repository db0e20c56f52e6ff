#include "evals/assemble.h"

#include <algorithm>
#include <optional>

namespace fixpoint::evals {
namespace {

bool word_character(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// Past a comment, string or character literal that starts at `at`; `at` itself where none does.
std::size_t skip_literal(std::string_view source, std::size_t at) {
  const std::string_view rest = source.substr(at);
  if (rest.starts_with("//")) return std::min(source.find('\n', at), source.size());
  if (rest.starts_with("/*")) {
    const std::size_t end = source.find("*/", at + 2);
    return end == std::string_view::npos ? source.size() : end + 2;
  }
  const char quote = rest.empty() ? '\0' : rest.front();
  if (quote != '"' && quote != '\'') return at;
  for (std::size_t i = at + 1; i < source.size(); ++i) {
    if (source[i] == '\\') {
      ++i;
    } else if (source[i] == quote) {
      return i + 1;
    } else if (source[i] == '\n') {
      return at + 1;  // an apostrophe in a comment-like place, a digit separator or a lifetime
    }
  }
  return source.size();
}

/// Past the block whose '{' is the first one at or after `at`.
std::optional<std::size_t> end_of_block(std::string_view source, std::size_t at) {
  int depth = 0;
  while (at < source.size()) {
    if (const std::size_t past = skip_literal(source, at); past != at) {
      at = past;
      continue;
    }
    if (source[at] == '{') ++depth;
    if (source[at] == '}' && --depth <= 0) return at + 1;
    ++at;
  }
  return std::nullopt;
}

/// Where the definition of a function `main` starts (its line), outside literals.
std::optional<std::size_t> find_main(std::string_view source) {
  for (std::size_t at = 0; at < source.size();) {
    if (const std::size_t past = skip_literal(source, at); past != at) {
      at = past;
      continue;
    }
    const bool starts = at == 0 || !word_character(source[at - 1]);
    if (starts && source.substr(at, 4) == "main") {
      const std::size_t open = source.find_first_not_of(" \t\r\n", at + 4);
      if (open != std::string_view::npos && source[open] == '(') {
        const std::size_t line = source.rfind('\n', at);
        return line == std::string_view::npos ? 0 : line + 1;
      }
    }
    ++at;
  }
  return std::nullopt;
}

std::string without_last_brace(std::string source) {
  if (const std::size_t brace = source.rfind('}'); brace != std::string::npos) source.resize(brace);
  return source;
}

Program whole_answer(const Task& task, std::string_view answer) {
  if (task.language == "java") return {without_last_brace(without_main(answer, task.language)), true};
  if (task.language == "cpp" || task.language == "rust") return {without_main(answer, task.language), true};
  return {std::string(answer), true};
}

}  // namespace

std::string without_main(std::string_view source, std::string_view /*language*/) {
  const auto start = find_main(source);
  if (!start) return std::string(source);
  const auto end = end_of_block(source, *start);
  if (!end) return std::string(source);
  return std::string(source.substr(0, *start)) + std::string(source.substr(*end));
}

std::string_view cut_at_stop(std::string_view text, const std::vector<std::string>& stop_tokens) {
  std::size_t end = text.size();
  for (const std::string& stop : stop_tokens) {
    if (!stop.empty()) end = std::min(end, text.find(stop));
  }
  return text.substr(0, end);
}

std::string_view first_fence(std::string_view text) {
  const std::size_t open = text.find("```");
  if (open == std::string_view::npos) return text;
  const std::size_t line = text.find('\n', open);
  if (line == std::string_view::npos) return text;
  const std::size_t close = text.find("\n```", line);
  return text.substr(line + 1, close == std::string_view::npos ? std::string_view::npos : close - line);
}

Program assemble(const Task& task, const Sample& sample) {
  switch (sample.form) {
    case Sample::Form::chat_answer: return assemble_answer(task, first_fence(sample.text));
    case Sample::Form::solution: return task.assembly == Assembly::cut_at_stop ? whole_answer(task, sample.text) : Program{sample.text, true};
    case Sample::Form::completion: break;
  }
  switch (task.assembly) {
    case Assembly::prompt_first: return {task.prompt + sample.text, true};
    case Assembly::whole_program: return {sample.text, true};
    case Assembly::cut_at_stop: return {task.prompt + std::string(cut_at_stop(sample.text, task.stop_tokens)), false};
  }
  return {};
}

Program assemble_answer(const Task& task, std::string_view answer) {
  if (task.assembly == Assembly::cut_at_stop) return whole_answer(task, answer);
  if (task.assembly == Assembly::prompt_first && task.language == "python") return {task.prompt + "\n\n" + std::string(answer), true};
  return {std::string(answer), true};
}

std::string with_tail(const Program& program, std::string_view tail) {
  if (program.closed) {
    const std::size_t first = tail.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && tail[first] == '}') tail.remove_prefix(first + 1);
  }
  return program.source + "\n" + std::string(tail);
}

}  // namespace fixpoint::evals
