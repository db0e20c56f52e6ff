#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/event.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto event = parse_event(text)) {
    const std::string json = to_json(*event);
    const auto again = parse_event(json);
    if (!again || to_json(*again) != json) std::abort();
  }
  (void)parse_stamped(text);
  return 0;
}
