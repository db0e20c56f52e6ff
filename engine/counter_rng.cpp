#include "engine/counter_rng.h"

namespace fixpoint::engine {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiply0 = 0xD2511F53U;
  constexpr std::uint64_t multiply1 = 0xCD9E8D57U;
  constexpr std::uint32_t weyl0 = 0x9E3779B9U;
  constexpr std::uint32_t weyl1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = multiply0 * counter[0];
    const std::uint64_t product1 = multiply1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + weyl0, key[1] + weyl1};
  }
  return counter;
}

double uniform(std::uint64_t seed, std::uint32_t sample, std::uint64_t position, Purpose purpose) {
  const auto bits = philox4x32({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32U), sample,
                                static_cast<std::uint32_t>(purpose)},
                               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  const std::uint64_t wide = (static_cast<std::uint64_t>(bits[0]) << 32U) | bits[1];
  return static_cast<double>(wide >> 11U) * 0x1.0p-53;
}

std::uint64_t mix64(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

}  // namespace fixpoint::engine
