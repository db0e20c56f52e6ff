#include <cstdint>
#include <cstdlib>

#include "server/tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tokens = fixpoint::server::TokenSet::parse({reinterpret_cast<const char*>(data), size});
  if (!tokens) return 0;
  const auto again = fixpoint::server::TokenSet::parse(tokens->to_json());
  if (!again || again->size() != tokens->size()) std::abort();
  return 0;
}
