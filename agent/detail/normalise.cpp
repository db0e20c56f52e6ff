// Keys that are equal for what is the same in substance: programs and failures (agent/extract.h).
#include <cctype>

#include "agent/detail/digest.h"
#include "agent/detail/fences.h"
#include "agent/detail/utf8.h"
#include "agent/extract.h"

namespace fixpoint::agent {
namespace {

/// Copies a string literal that starts at `at`; returns the offset behind it.
std::size_t copy_string(std::string_view code, std::size_t at, std::string& out) {
  const char quote = code[at];
  const std::string_view triple = code.substr(at, 3);
  const bool is_triple = triple.size() == 3 && triple[1] == quote && triple[2] == quote;
  std::size_t i = at + (is_triple ? 3 : 1);
  for (; i < code.size(); ++i) {
    if (code[i] == '\\') {
      ++i;
    } else if (is_triple ? code.substr(i, 3) == triple : code[i] == quote) {
      i += is_triple ? 3 : 1;
      break;
    } else if (!is_triple && code[i] == '\n' && quote != '`') {
      break;  // unclosed: the line ends it
    }
  }
  i = std::min(i, code.size());
  out += code.substr(at, i - at);
  return i;
}

std::string without_comments(std::string_view code, bool hash_comments) {
  std::string out;
  for (std::size_t i = 0; i < code.size();) {
    const char c = code[i];
    const bool string_start = c == '"' || c == '\'' || (!hash_comments && c == '`');
    const bool line_comment = hash_comments ? c == '#' : code.substr(i, 2) == "//";
    if (string_start) {
      i = copy_string(code, i, out);
    } else if (line_comment) {
      i = std::min(code.find('\n', i), code.size());
    } else if (!hash_comments && code.substr(i, 2) == "/*") {
      const std::size_t end = code.find("*/", i + 2);
      i = end == std::string_view::npos ? code.size() : end + 2;
      out += ' ';
    } else {
      out += c;
      ++i;
    }
  }
  return out;
}

}  // namespace

std::string program_key(std::string_view program, std::string_view language) {
  if (detail::trimmed(program).empty()) return {};
  const bool hash_comments = language == "python" || language == "bash" || language == "ruby" || language == "perl";
  const std::string code = without_comments(detail::unix_lines(program), hash_comments);
  std::string lines;
  for (const std::string_view line : detail::split_lines(code)) {
    const std::size_t last = line.find_last_not_of(" \t\f\v");
    if (last == std::string_view::npos) continue;
    lines += line.substr(0, last + 1);
    lines += '\n';
  }
  return detail::sha256_hex(lines).substr(0, 16);
}

std::string failure_key(const Judgement& judgement) {
  std::string text(to_string(judgement.status));
  text += '\n';
  if (!judgement.failures.empty()) {
    const FailedTest& first = judgement.failures.front();
    text += std::to_string(first.index) + "\n" + first.actual + "\n" + first.error;
  } else {
    text += judgement.message;
  }
  // Addresses and positions change from run to run, or with a comment; values do not.
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("0x")) {
      i += 2;
      while (i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
    } else if (rest.starts_with("line ")) {
      i += 5;
      while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
    } else {
      plain += text[i++];
    }
  }
  return detail::sha256_hex(plain).substr(0, 16);
}

}  // namespace fixpoint::agent
