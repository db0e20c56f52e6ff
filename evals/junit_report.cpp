#include "evals/junit_report.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace fixpoint::evals {
namespace {

/// The length of the UTF-8 character at `at`, or 0 where there is none that XML 1.0 allows.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : first >= 0xF0 && first < 0xF5 ? 4 : 0;
  std::uint32_t code = length == 2 ? first & 0x1F : length == 3 ? first & 0x0F : first & 0x07;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool allowed = (code >= 0x80 && code < 0xD800) || (code >= 0xE000 && code < 0xFFFE) || (code >= 0x10000 && code < 0x110000);
  const bool shortest = length == 2 || (length == 3 && code >= 0x800) || (length == 4 && code >= 0x10000);
  return allowed && shortest ? length : 0;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    at += character.size();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (character == "&") {
      out += "&amp;";
    } else if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (character == "\"") {
      out += "&quot;";
    } else if (character == "\n" || character == "\r" || character == "\t") {
      out += "&#" + std::to_string(static_cast<int>(character.front())) + ";";  // kept in attributes too
    } else {
      out += character;
    }
  }
  return out;
}

std::string seconds(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3f", value);
  return buffer;
}

std::string test_case(const RunInfo& info, const Record& record) {
  const Judgement& judgement = record.judgement;
  std::string out = "  <testcase classname=\"" + escape_xml(info.benchmark) + "\" name=\"" +
                    escape_xml(record.task + (record.sample > 0 ? " #" + std::to_string(record.sample) : "")) + "\" time=\"" + seconds(record.wall_seconds) + "\"";
  if (judgement.passed()) return out + "/>\n";
  const std::string element = judgement.outcome == Outcome::not_judged ? "error" : "failure";
  std::string text;
  if (!judgement.failed_test.empty()) text += "test: " + judgement.failed_test + "\n";
  if (!judgement.expected.empty()) text += "expected: " + judgement.expected + "\n";
  if (!judgement.got.empty()) text += "got: " + judgement.got + "\n";
  return out + ">\n    <" + element + " type=\"" + std::string(to_string(judgement.outcome)) + "\" message=\"" + escape_xml(judgement.message) + "\">" + escape_xml(text) +
         "</" + element + ">\n  </testcase>\n";
}

}  // namespace

std::string junit_report(const RunInfo& info, const Summary& summary, const std::vector<Record>& records) {
  const auto errors = summary.outcomes.find("not_judged");
  const std::int64_t error_count = errors == summary.outcomes.end() ? 0 : errors->second;
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + escape_xml("fixpoint eval " + info.benchmark) + "\" tests=\"" +
                    std::to_string(summary.programs) + "\" failures=\"" + std::to_string(summary.programs - summary.programs_passed - error_count) + "\" errors=\"" +
                    std::to_string(error_count) + "\" skipped=\"0\" time=\"" + seconds(summary.seconds) + "\">\n  <properties>\n";
  for (const auto& [name, value] : described(info)) out += "    <property name=\"" + name + "\" value=\"" + escape_xml(value) + "\"/>\n";
  out += "  </properties>\n";
  for (const Record& record : records) out += test_case(info, record);
  return out + "</testsuite>\n";
}

}  // namespace fixpoint::evals
