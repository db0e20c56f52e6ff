#include "sandbox/equality.h"

#include "sandbox/detail/check/canonical.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace fixpoint::sandbox {
namespace {

using detail::canonical_members;
using detail::canonical_number;

using Kind = Value::Kind;

bool is_number(Kind kind) {
  return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real || kind == Kind::complex || kind == Kind::decimal;
}
bool is_sequence(Kind kind) { return kind == Kind::list || kind == Kind::tuple; }
bool is_set(Kind kind) { return kind == Kind::set || kind == Kind::frozenset; }

double as_double(const Value& value) {
  switch (value.kind) {
    case Kind::boolean: return value.boolean ? 1 : 0;
    case Kind::integer: return std::strtod(value.text.c_str(), nullptr);  // reads 0x too; beyond double: infinity
    case Kind::decimal: return std::strtod(value.text.c_str(), nullptr);
    default: return value.real;
  }
}

// Subclasses of Python's containers compare as the container does; a subclass of int or str compares as its plain content,
// whatever its own __eq__ says.
bool compares_as_content(const std::string& name) {
  return name == "Counter" || name == "OrderedDict" || name == "defaultdict" || name == "namedtuple" || name.starts_with("subclass:");
}
const Value& content(const Value& value) {
  const Value* at = &value;
  while (at->kind == Kind::named && compares_as_content(at->text) && !at->items.empty()) at = &at->items.front();
  return *at;
}

class Comparison {
 public:
  explicit Comparison(const Equality& rules) : rules_(rules) {}

  bool same(const Value& got_in, const Value& expected_in) const {
    const Value& got = content(got_in);
    const Value& expected = content(expected_in);
    if (rules_.strict_types && is_number(got.kind) && got.kind != expected.kind) return false;
    if (is_number(got.kind) && is_number(expected.kind)) return numbers(got, expected);
    if (is_sequence(got.kind) && is_sequence(expected.kind)) {
      return (got.kind == expected.kind || rules_.lists_equal_tuples) && sequences(got, expected);
    }
    if (is_set(got.kind) && is_set(expected.kind)) return sets(got, expected);
    if (got.kind != expected.kind) return false;
    switch (got.kind) {
      case Kind::none:
      case Kind::undefined: return true;
      case Kind::string:
      case Kind::bytes: return got.text == expected.text;
      case Kind::dict: return dicts(got, expected);
      case Kind::named:
        return got.text == expected.text && got.text != "iterator" && !got.items.empty() && !expected.items.empty() &&
               same(got.items.front(), expected.items.front());
      default: return false;  // objects are opaque: never equal to anything
    }
  }

 private:
  bool close(double got, double expected) const {
    if (std::isnan(got) || std::isnan(expected)) return rules_.nan_equals_nan && std::isnan(got) && std::isnan(expected);
    if (std::isinf(got) || std::isinf(expected)) return got == expected;
    return std::fabs(got - expected) <= rules_.absolute_tolerance + rules_.relative_tolerance * std::fabs(expected);
  }

  bool numbers(const Value& got, const Value& expected) const {
    if (got.kind == Kind::real && expected.kind == Kind::real && got.real == expected.real) return true;
    if (const auto key = canonical_number(got); key && key == canonical_number(expected)) return true;
    const bool tolerant = rules_.absolute_tolerance > 0 || rules_.relative_tolerance > 0;
    const bool both_nan = std::isnan(as_double(got)) && std::isnan(as_double(expected));
    if (!tolerant && !(both_nan && rules_.nan_equals_nan)) return false;
    // Only floats are ever approximate: two different integers stay different, however large the tolerance is.
    if (got.kind == Kind::integer && expected.kind == Kind::integer) return false;
    if (got.kind == Kind::complex || expected.kind == Kind::complex) {
      return close(as_double(got), as_double(expected)) && close(got.imaginary, expected.imaginary);
    }
    return close(as_double(got), as_double(expected));
  }

  bool sequences(const Value& got, const Value& expected) const {
    return std::equal(got.items.begin(), got.items.end(), expected.items.begin(), expected.items.end(),
                      [this](const Value& a, const Value& b) { return same(a, b); });
  }

  bool sets(const Value& got, const Value& expected) const {
    return canonical_members(got.items, 1) == canonical_members(expected.items, 1);
  }

  bool dicts(const Value& got, const Value& expected) const {
    if (got.items.size() != expected.items.size()) return false;
    const auto left = canonical_members(got.items, 2);
    const auto right = canonical_members(expected.items, 2);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i].key != right[i].key) return false;
      if (!same(got.items[left[i].index + 1], expected.items[right[i].index + 1])) return false;
    }
    return true;
  }

  const Equality& rules_;
};

bool floats_only(const Value& value) {
  if (value.kind == Kind::real) return true;
  return is_sequence(value.kind) && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(), [](const Value& item) { return item.kind == Kind::real; });
}

// numpy.allclose over nested sequences: types below the top do not matter, shapes do.
bool all_close(const Value& got, const Value& expected, double atol) {
  if (is_sequence(got.kind) && is_sequence(expected.kind)) {
    return std::equal(got.items.begin(), got.items.end(), expected.items.begin(), expected.items.end(),
                      [atol](const Value& a, const Value& b) { return all_close(a, b, atol); });
  }
  if (!is_number(got.kind) || !is_number(expected.kind)) return false;
  const double a = as_double(got);
  const double b = as_double(expected);
  if (std::isnan(a) || std::isnan(b)) return false;
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= atol + 1e-7 * std::fabs(b) &&
         std::fabs(got.imaginary - expected.imaginary) <= atol + 1e-7 * std::fabs(expected.imaginary);
}

bool evalplus_equal(const Value& got, const Value& expected, const Equality& rules) {
  Equality exact = rules;
  exact.absolute_tolerance = exact.relative_tolerance = 0;
  if (Comparison(exact).same(got, expected)) return true;
  double atol = rules.absolute_tolerance;
  if (atol == 0 && floats_only(expected)) atol = 1e-6;
  if (atol == 0 || got.kind != expected.kind) return false;
  return all_close(got, expected, atol);
}

bool as_sets(const Value& got, const Value& expected) {
  const auto members = [](const Value& value) {
    auto found = canonical_members(value.items, 1);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  return members(got) == members(expected);
}

}  // namespace

bool equal(const Value& got, const Value& expected, const Equality& equality) {
  if (equality.oracle) return equality.oracle(got, expected);
  const bool both = (is_sequence(got.kind) || is_set(got.kind)) && (is_sequence(expected.kind) || is_set(expected.kind));
  if (equality.ignore_order && both) return as_sets(got, expected);
  if (equality.evalplus) return evalplus_equal(got, expected, equality);
  return Comparison(equality).same(got, expected);
}

}  // namespace fixpoint::sandbox
