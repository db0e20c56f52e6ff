#pragma once

#include <array>
#include <cstdint>

namespace fixpoint::engine {

/// What a random number is for; numbers of different purposes are independent.
enum class Purpose : std::uint32_t { token = 0, acceptance = 1, residual = 2 };

/// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): a keyed bijection of counters.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// A number in [0, 1) that depends on its arguments alone: not on what was drawn before, nor for whom else. `sample` is the
/// index among a request's parallel samples, `position` the index of the token in its output.
[[nodiscard]] double uniform(std::uint64_t seed, std::uint32_t sample, std::uint64_t position, Purpose purpose);

/// SplitMix64's output function: spreads consecutive numbers over all 64 bits.
[[nodiscard]] std::uint64_t mix64(std::uint64_t value);

}  // namespace fixpoint::engine
