#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/detail/sse.h"

/// The first byte says how the stream is cut; the events must not depend on it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fixpoint::agent::detail::SseParser;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto events_of = [&](std::size_t piece) {
    std::vector<std::string> events;
    const auto sink = [&events](std::string_view event) { events.emplace_back(event); };
    SseParser parser;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      if (!parser.push(bytes.substr(i, piece), sink)) break;
    }
    parser.finish(sink);
    return events;
  };
  if (events_of(1 + data[0] % 16) != events_of(bytes.size() + 1)) std::abort();
  return 0;
}
