#include "evals/detail/plus_oracle.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sandbox/equality.h"

namespace fixpoint::evals::detail {
namespace {

using sandbox::Value;
using Kind = Value::Kind;

std::optional<double> real_number(const Value& value) {
  switch (value.kind) {
    case Kind::boolean: return value.boolean ? 1.0 : 0.0;
    case Kind::integer: return std::strtod(value.text.c_str(), nullptr);
    case Kind::real: return value.real;
    default: return std::nullopt;
  }
}

bool only_floats(const Value& value) {
  if (value.kind == Kind::real) return true;
  return (value.kind == Kind::list || value.kind == Kind::tuple) && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(), [](const Value& item) { return item.kind == Kind::real; });
}

/// HumanEval/32: x is a zero of sum xs[i] x^i.
bool is_polynomial_zero(const Value& arguments, const Value& got, double tolerance) {
  const auto x = real_number(got);
  if (!x || arguments.items.empty()) return false;
  double sum = 0;
  const auto& coefficients = arguments.items.front().items;
  for (std::size_t i = 0; i < coefficients.size(); ++i) {
    const auto coefficient = real_number(coefficients[i]);
    const double power = std::pow(*x, static_cast<double>(i));
    if (!coefficient || (std::isinf(power) && std::isfinite(*x))) return false;  // Python's math.pow raises OverflowError
    sum += *coefficient * power;
  }
  return std::fabs(sum) <= tolerance;
}

/// Mbpp/581: the height taken as the perpendicular from the base to the apex.
bool is_pyramid_surface(const Value& arguments, const Value& got, double tolerance) {
  if (arguments.items.size() != 2) return false;
  const auto edge = real_number(arguments.items[0]);
  const auto height = real_number(arguments.items[1]);
  const auto surface = real_number(got);
  if (!edge || !height || !surface) return false;
  const double slant = std::sqrt(*edge / 2 * (*edge / 2) + *height * *height);
  const double rounded = std::nearbyint(*edge * *edge + 4 * (*edge * slant) / 2);
  return std::fabs(*surface - rounded) <= tolerance;
}

/// Mbpp/558: the sum of differences of digits, the shorter number padded with zeros.
bool is_padded_digit_distance(const Value& arguments, const Value& got) {
  if (arguments.items.size() != 2 || arguments.items[0].kind != Kind::integer || arguments.items[1].kind != Kind::integer) return false;
  std::string first = arguments.items[0].text;
  std::string second = arguments.items[1].text;
  const std::size_t length = std::max(first.size(), second.size());
  first.insert(0, length - first.size(), '0');
  second.insert(0, length - second.size(), '0');
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < length; ++i) {
    if (first[i] < '0' || first[i] > '9' || second[i] < '0' || second[i] > '9') return false;
    sum += std::abs(first[i] - second[i]);
  }
  return equal(got, Value::of(sum));
}

/// What Python's set() takes: the members of a container, the characters of a text, the keys of a dict.
std::optional<Value> members(const Value& value) {
  Value out = Value::list_of({});
  switch (value.kind) {
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::frozenset: out.items = value.items; break;
    case Kind::dict:
      for (std::size_t i = 0; i < value.items.size(); i += 2) out.items.push_back(value.items[i]);
      break;
    case Kind::string:
      for (std::size_t i = 0; i < value.text.size();) {
        std::size_t end = i + 1;
        while (end < value.text.size() && (static_cast<unsigned char>(value.text[end]) & 0xC0) == 0x80) ++end;
        out.items.push_back(Value::of(value.text.substr(i, end - i)));
        i = end;
      }
      break;
    case Kind::named:
      if (value.items.size() != 1) return std::nullopt;
      return members(value.items.front());
    default: return std::nullopt;
  }
  const auto unhashable = [](const Value& item) { return item.kind == Kind::list || item.kind == Kind::dict || item.kind == Kind::set; };
  if (std::any_of(out.items.begin(), out.items.end(), unhashable)) return std::nullopt;
  return out;
}

bool are_same_set(const Value& got, const Value& expected) {
  const auto left = members(got);
  const auto right = members(expected);
  return left && right && equal(*left, *right, {.ignore_order = true});
}

/// ==, and where that fails and a tolerance is in force: same type, same shape, close numbers.
bool is_close(const Value& got, const Expectation& expectation) {
  return equal(got, expectation.value, {.absolute_tolerance = expectation.tolerance, .evalplus = true});
}

}  // namespace

std::vector<double> effective_tolerances(double tolerance, std::span<const Value> expected) {
  std::vector<double> out;
  for (const Value& value : expected) {
    if (tolerance == 0 && only_floats(value)) tolerance = 1e-6;
    out.push_back(tolerance);
  }
  return out;
}

bool accepts(Oracle oracle, const Value& got, const Expectation& expectation) {
  switch (oracle) {
    case Oracle::polynomial_zero: return is_polynomial_zero(expectation.arguments, got, expectation.tolerance);
    case Oracle::any_value: return true;
    case Oracle::zero_accepted: return is_close(got, expectation) || equal(got, Value::of(0));
    case Oracle::pyramid_surface: return is_close(got, expectation) || is_pyramid_surface(expectation.arguments, got, expectation.tolerance);
    case Oracle::padded_digit_distance: return is_close(got, expectation) || is_padded_digit_distance(expectation.arguments, got);
    case Oracle::same_set: return are_same_set(got, expectation.value);
    case Oracle::not_none:  // both were reduced to a boolean where they were computed
    case Oracle::equal: return is_close(got, expectation);
  }
  return false;
}

Value pack(Expectation expectation) {
  return Value::tuple_of({std::move(expectation.arguments), std::move(expectation.value), Value::of(expectation.tolerance)});
}

bool accepts_packed(Oracle oracle, const Value& got, const Value& packed) {
  // The judge shows expected values by comparing too; anything else than a packed expectation is never equal.
  if (packed.kind != Kind::tuple || packed.items.size() != 3) return false;
  return accepts(oracle, got, {packed.items[0], packed.items[kPackedValue], packed.items[2].real});
}

}  // namespace fixpoint::evals::detail
