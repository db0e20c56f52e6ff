#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace fixpoint::cli {

/// Checks of option values. CLI11 puts the option's name before what they say, and main turns it into exit code 2.
/// All of them refuse what is no number (NaN too) and what has other text after the number.

/// A number in [low, high].
[[nodiscard]] CLI::Validator number_between(double low, double high);
/// A number in (low, high].
[[nodiscard]] CLI::Validator number_above(double low, double high);
/// Seconds in (0, 10^9]: any clock can add them to its time.
[[nodiscard]] CLI::Validator positive_seconds();
/// The same, or 0.
[[nodiscard]] CLI::Validator seconds_or_zero();
/// A whole number from 1 to `most`. For `Option::transform`, since CLI11 would read 010 as eight.
[[nodiscard]] CLI::Validator positive_count(std::int64_t most = 1'000'000'000);
/// A whole number from 0 to 2^64 - 1, in decimal digits. For `Option::transform`, too.
[[nodiscard]] CLI::Validator seed_number();
/// A whole number in [low, high], or 0.
[[nodiscard]] CLI::Validator zero_or_between(std::int64_t low, std::int64_t high);
/// A size such as 4G: see parse_bytes.
[[nodiscard]] CLI::Validator byte_size();
/// F32, F16, BF16, INT8, FP8 or INT4, in any case.
[[nodiscard]] CLI::Validator kv_type_name();
/// Text of 1 to `most` bytes.
[[nodiscard]] CLI::Validator text_up_to(std::size_t most);

}  // namespace fixpoint::cli
