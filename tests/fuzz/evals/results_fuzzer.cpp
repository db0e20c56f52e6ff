// Lines of a results file, and the texts that reports are made of.
#include <cstdlib>
#include <string_view>

#include "evals/detail/bash_calls.h"
#include "evals/detail/contest_output.h"
#include "evals/html_report.h"
#include "evals/junit_report.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace fixpoint::evals;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view half = text.substr(0, size / 2);
  (void)detail::output_difference(half, text.substr(size / 2));
  if (const auto calls = detail::parse_bash_tests(text)) {
    for (const detail::BashCall& call : calls->calls) (void)detail::unquote_bash(call.expected);
  }
  (void)parse_run_info(text);
  const auto record = parse_record(text);
  if (!record) return 0;
  const std::string line = to_json_line(*record);
  const auto again = parse_record(line);
  if (!again || to_json_line(*again) != line) std::abort();
  const Summary summary = summarise({*record});
  (void)html_report({}, summary, {*record});
  (void)junit_report({}, summary, {*record});
  return 0;
}
