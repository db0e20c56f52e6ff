#pragma once

#include "sandbox/value.h"

#include <functional>
#include <optional>

namespace fixpoint::sandbox {

// When two values count as the same answer. The default is Python's `==` on plain values: 1 == 1.0 == True, [1] != (1,),
// sets and dicts without order, nan != nan, no tolerance.
struct Equality {
  double absolute_tolerance = 0;
  double relative_tolerance = 0;  // of the expected value; |got - expected| <= absolute + relative * |expected|
  bool strict_types = false;      // 1, 1.0 and True are three different answers
  bool lists_equal_tuples = false;
  bool nan_equals_nan = false;
  bool ignore_order = false;      // top-level sequences compare as sets, as some MBPP oracles do
  // EvalPlus: Python's == first; where that fails and the expected value is a float or a sequence of floats, or a tolerance
  // was given, the types and lengths must be the same and numbers close with rtol 1e-7 and atol (1e-6 where none was given).
  bool evalplus = false;
  // An oracle of one's own; it decides alone.
  std::function<bool(const Value& got, const Value& expected)> oracle;
};

bool equal(const Value& got, const Value& expected, const Equality& equality = {});

// How a printed answer is compared with the expected one.
enum class TextMode {
  exact,   // byte for byte
  lines,   // trailing blanks of lines and trailing empty lines do not count
  tokens,  // split at white space; equal one by one
  numbers, // as tokens, but two tokens that are numbers are equal when they are close (decimal values; 1.0 == 1)
};

struct TextEquality {
  TextMode mode = TextMode::lines;
  double absolute_tolerance = 0;  // for `numbers`; with both zero the values must be exactly equal as decimals
  double relative_tolerance = 0;
};

// Where the first difference is, for people.
struct TextDifference {
  std::size_t line = 0;  // from 1
  std::string got;       // that line, bounded
  std::string expected;
};

// Nothing when the texts count as equal.
std::optional<TextDifference> difference(std::string_view got, std::string_view expected, const TextEquality& equality = {});

}  // namespace fixpoint::sandbox
