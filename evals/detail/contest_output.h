#pragma once

#include <string>
#include <string_view>

namespace fixpoint::evals::detail {

/// LiveCodeBench's comparison of printed output: both texts are stripped and split into lines; lines are stripped, and
/// two unequal ones count as equal when both are all decimal numbers of the same values, exactly ("1.0" is "1").
/// Returns nothing when they agree, or what differs, for people.
[[nodiscard]] std::string output_difference(std::string_view got, std::string_view expected);

/// Whether both are numbers as Python's decimal.Decimal reads them, of the same value. NaN equals nothing.
[[nodiscard]] bool same_decimal(std::string_view a, std::string_view b);

}  // namespace fixpoint::evals::detail
