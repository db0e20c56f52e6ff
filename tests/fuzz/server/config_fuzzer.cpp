#include <cstdint>
#include <cstdlib>

#include "server/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = fixpoint::server::parse_config({reinterpret_cast<const char*>(data), size});
  if (!entries) return entries.error().empty() ? std::abort(), 0 : 0;
  for (const auto& entry : *entries) {
    if (!entry.flag.starts_with("--") || entry.flag.size() < 3) std::abort();
  }
  return 0;
}
