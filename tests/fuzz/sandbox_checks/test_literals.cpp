// Tests as text: literals, JSON, lists of asserts. What is read must survive the wire.
#include "sandbox/check.h"

#include <cstdint>
#include <cstdlib>

using namespace fixpoint::sandbox;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& parsed : {parse_python_literal(text), parse_json_value(text)}) {
    if (!parsed) continue;
    const auto again = decode(encode(*parsed));
    if (!again || encode(*again) != encode(*parsed)) std::abort();
    (void)equal(*parsed, *again);
  }
  if (const auto tests = parse_simple_asserts(text)) {
    for (const CallTest& test : *tests) {
      for (const Value& value : test.arguments) {
        if (!decode(encode(value))) std::abort();
      }
    }
  }
  return 0;
}
