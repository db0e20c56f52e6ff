#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/extract.h"

/// The first byte chooses the language; the rest is a model's answer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::agent;
  if (size == 0) return 0;
  static constexpr std::string_view kLanguages[] = {"python", "cpp", "javascript", "bash"};
  const std::string_view language = kLanguages[data[0] % 4];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Extracted found = extract(text, language, "f", (data[0] & 4) != 0 ? "def f(x):" : "");
  if ((found.kind == ExtractKind::none) != found.program.empty()) std::abort();
  if (!found.program.empty() && found.program.back() != '\n') std::abort();
  // A program that was found is found again in a fence of its own.
  (void)program_key(found.program, language);
  (void)extract_assertions(text, 8);
  (void)find_header(text, "f");
  return 0;
}
