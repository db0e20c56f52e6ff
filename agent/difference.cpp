#include "agent/difference.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

using sandbox::Value;
using Number = std::int64_t;
using Numbers = std::vector<Number>;
using Texts = std::vector<std::string>;
using Clauses = std::vector<std::string>;

constexpr std::size_t kListedBytes = 60;  // of what is listed
constexpr Number kLargestNumber = 1'000'000'000'000'000;
constexpr Number kLargestRatio = 99;
constexpr std::size_t kLongestSequence = 1000;

/// What two sequences are made of: the words for it, and how a part of one is shown.
enum class Unit : std::uint8_t { character, element };

std::string_view name(Unit unit) { return unit == Unit::character ? "character" : "element"; }

std::string count(std::size_t n, Unit unit) { return std::to_string(n) + " " + std::string(name(unit)) + (n == 1 ? "" : "s"); }

std::string joined(const Clauses& clauses) {
  std::string text;
  for (const std::string& clause : clauses) text += (text.empty() ? "" : "; ") + clause;
  return text;
}

Clauses operator+(Clauses a, Clauses b) {
  std::move(b.begin(), b.end(), std::back_inserter(a));
  return a;
}

// ---------------------------------------------------------------- values
std::string_view kind_words(const Value& value) {
  switch (value.kind) {
    case Value::Kind::none: return "None";
    case Value::Kind::boolean: return "a truth value";
    case Value::Kind::integer:
    case Value::Kind::real: return "a number";
    case Value::Kind::string: return "a text";
    case Value::Kind::list: return "a list";
    case Value::Kind::tuple: return "a tuple";
    default: return {};
  }
}

std::optional<Number> number_of(const Value& value) {
  if (value.kind != Value::Kind::integer) return std::nullopt;
  Number number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [at, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || at != end || std::abs(number) > kLargestNumber) return std::nullopt;
  return number;
}

/// All the items as numbers, or nothing.
std::optional<Numbers> numbers_of(const Value& list) {
  Numbers out;
  for (const Value& item : list.items) {
    const auto number = number_of(item);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

std::optional<Texts> texts_of(const Value& list) {
  Texts out;
  for (const Value& item : list.items) {
    if (item.kind != Value::Kind::string) return std::nullopt;
    out.push_back(item.text);
  }
  return out;
}

Texts characters_of(std::string_view text) {
  Texts out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = detail::ceil_character(text, at + 1);
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string shown(Number number) { return std::to_string(number); }
std::string shown(const std::string& text) { return to_text(Value::of(text)); }
std::string shown(const Numbers& numbers, Unit) {
  std::vector<Value> values(numbers.size());
  std::transform(numbers.begin(), numbers.end(), values.begin(), [](Number number) { return Value::of(number); });
  return to_text(Value::list_of(std::move(values)));
}
std::string shown(const Texts& texts, Unit unit) {
  if (unit == Unit::character) return shown(std::accumulate(texts.begin(), texts.end(), std::string()));
  std::vector<Value> values(texts.size());
  std::transform(texts.begin(), texts.end(), values.begin(), [](const std::string& text) { return Value::of(text); });
  return to_text(Value::list_of(std::move(values)));
}

// ---------------------------------------------------------------- numbers
std::string too_large(Number by) { return std::to_string(std::abs(by)) + (by > 0 ? " too large" : " too small"); }

struct Ratio {
  Number got = 0;
  Number expected = 0;
  bool operator==(const Ratio&) const = default;
  std::string words() const { return std::to_string(got) + " to " + std::to_string(expected); }
};

/// In lowest terms; nothing where one is zero, their signs differ, or the terms are large.
std::optional<Ratio> ratio(Number expected, Number got) {
  if (expected == 0 || got == 0 || (expected < 0) != (got < 0)) return std::nullopt;
  const Number by = std::gcd(expected, got);
  const Ratio ratio{.got = std::abs(got) / by, .expected = std::abs(expected) / by};
  if (std::max(ratio.got, ratio.expected) > kLargestRatio) return std::nullopt;
  return ratio;
}

Clauses of_numbers(Number expected, Number got) {
  if (expected == got) return {};
  if (got == -expected) return {"got has the wrong sign"};
  Clauses clauses{"got is " + too_large(got - expected)};
  const auto pair = ratio(expected, got);
  if (pair && std::gcd(expected, got) > 1) clauses.push_back("got to expected is " + pair->words());
  return clauses;
}

// ---------------------------------------------------------------- the case of letters; of ASCII alone
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_small(c) || is_capital(c); }
char lower(char c) { return is_capital(c) ? static_cast<char>(c - 'A' + 'a') : c; }

bool differ_in_case_alone(const Texts& expected, const Texts& got) {
  return std::equal(expected.begin(), expected.end(), got.begin(), got.end(), [](const std::string& a, const std::string& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
  });
}
bool differ_in_case_alone(const Numbers&, const Numbers&) { return false; }

/// A capital letter where a word begins and no other.
bool is_title(std::string_view text) {
  bool before = false;
  for (const char c : text) {
    if (before ? is_capital(c) : is_small(c)) return false;
    before = is_letter(c);
  }
  return true;
}

/// Of texts that differ in case alone.
Clauses case_words(const Texts& expected, const Texts& got, Unit unit) {
  const std::string letters = std::accumulate(expected.begin(), expected.end(), std::string());
  const std::string others = std::accumulate(got.begin(), got.end(), std::string());
  if (std::none_of(letters.begin(), letters.end(), is_small)) return {"expected is in upper case"};
  if (std::none_of(letters.begin(), letters.end(), is_capital)) return {"expected is in lower case"};
  if (unit == Unit::character ? is_title(letters) : std::all_of(expected.begin(), expected.end(), is_title)) {
    return {"in expected each word begins with a capital letter"};
  }
  const bool swapped = std::equal(letters.begin(), letters.end(), others.begin(), [](char a, char b) { return !is_letter(a) || a != b; });
  return swapped ? Clauses{"each letter has the other case"} : Clauses{};
}
Clauses case_words(const Numbers&, const Numbers&, Unit) { return {}; }

// ---------------------------------------------------------------- sequences
/// What `longer` has besides all that `shorter` has, in its order; nothing where it lacks some of that.
template <class T>
std::optional<std::vector<T>> without(const std::vector<T>& longer, const std::vector<T>& shorter) {
  std::map<T, std::size_t> left;
  for (const T& x : shorter) ++left[x];
  std::vector<T> out;
  for (const T& x : longer) {
    const auto it = left.find(x);
    if (it == left.end()) {
      out.push_back(x);
    } else if (--it->second == 0) {
      left.erase(it);
    }
  }
  if (!left.empty()) return std::nullopt;
  return out;
}

template <class T>
std::string where(const std::vector<T>& longer, const std::vector<T>& shorter) {
  if (std::equal(shorter.begin(), shorter.end(), longer.begin())) return " at the end";
  return std::equal(shorter.rbegin(), shorter.rend(), longer.rbegin()) ? " at the front" : "";
}

template <class T>
std::string listed(const std::vector<T>& part, Unit unit) {
  const std::string text = shown(part, unit);
  return text.size() <= kListedBytes ? ": " + text : "";
}

/// How `got` must be turned to be `expected`, which has the same parts.
template <class T>
Clauses turn(const std::vector<T>& expected, const std::vector<T>& got) {
  if (std::equal(expected.begin(), expected.end(), got.rbegin())) return {"got is reversed"};
  for (std::size_t k = 1; k < 4 && k + 1 < got.size(); ++k) {
    for (const bool left : {true, false}) {
      std::vector<T> turned = got;
      std::rotate(turned.begin(), left ? turned.begin() + static_cast<std::ptrdiff_t>(k) : turned.end() - static_cast<std::ptrdiff_t>(k),
                  turned.end());
      if (turned == expected) return {std::string("got must be rotated ") + (left ? "left" : "right") + " by " + std::to_string(k)};
    }
  }
  return {};
}

template <class T>
Clauses first_difference(const std::vector<T>& expected, const std::vector<T>& got, Unit unit) {
  const std::size_t both = std::min(expected.size(), got.size());
  const auto at = static_cast<std::size_t>(std::mismatch(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(both), expected.begin()).first - got.begin());
  if (at == both) return {};
  std::string text = std::string(name(unit)) + " " + std::to_string(at) + " of got is " + shown(got[at]) + ", expected " + shown(expected[at]);
  return text.size() <= 2 * kListedBytes ? Clauses{std::move(text)} : Clauses{};
}

/// What is true of all the places where two lists of one length differ.
Clauses each(const Texts& expected, const Texts& got, Unit unit) {
  if (unit == Unit::element) return {};
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != got[i]) pairs.emplace(got[i], expected[i]);
  }
  if (pairs.size() != 1) return {};
  return {"got has " + shown(pairs.begin()->first) + " where expected has " + shown(pairs.begin()->second)};
}

Clauses each(const Numbers& expected, const Numbers& got, Unit) {
  if (expected.size() < 2) return {};
  bool same_sum = true, opposite = true, same_ratio = true;
  std::optional<Ratio> pair;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    same_sum = same_sum && got[i] - expected[i] == got[0] - expected[0];
    opposite = opposite && got[i] == -expected[i];
    if (expected[i] == 0 && got[i] == 0) continue;
    const auto mine = ratio(expected[i], got[i]);
    same_ratio = same_ratio && mine && (!pair || *pair == *mine);
    pair = pair ? pair : mine;
  }
  if (same_sum) return {"each element of got is " + too_large(got[0] - expected[0])};
  if (opposite) return {"each element of got has the wrong sign"};
  return same_ratio && pair ? Clauses{"each element of got to that of expected is " + pair->words()} : Clauses{};
}

/// The first of these that holds.
template <class T>
Clauses of_sequences(const std::vector<T>& expected, const std::vector<T>& got, Unit unit) {
  if (got == expected) return {};
  if (differ_in_case_alone(expected, got)) return Clauses{"only the case differs"} + case_words(expected, got, unit);
  const auto more = without(got, expected), fewer = without(expected, got);
  if (more && fewer) return Clauses{"got has the same " + std::string(name(unit)) + "s in another order"} + turn(expected, got);
  if (more) return {"got has " + count(more->size(), unit) + " too many" + where(got, expected) + listed(*more, unit)};
  if (fewer) return {"got lacks " + count(fewer->size(), unit) + where(expected, got) + listed(*fewer, unit)};
  if (expected.size() != got.size()) {
    const bool longer = got.size() > expected.size();
    const std::size_t by = longer ? got.size() - expected.size() : expected.size() - got.size();
    return Clauses{"got has " + count(by, unit) + (longer ? " more" : " fewer")} + first_difference(expected, got, unit);
  }
  Clauses clauses = each(expected, got, unit);
  return clauses.empty() ? first_difference(expected, got, unit) : clauses;
}

// ---------------------------------------------------------------- properties of lists
template <class T>
struct Order {
  std::string_view words;
  bool (*before)(const T& a, const T& b);
};

constexpr std::array<Order<Number>, 3> kOrdersOfNumbers{{
    {"in ascending order", [](const Number& a, const Number& b) { return a < b; }},
    {"in descending order", [](const Number& a, const Number& b) { return a > b; }},
    {"ordered by absolute value", [](const Number& a, const Number& b) { return std::abs(a) < std::abs(b); }},
}};
/// Lengths are of characters.
bool is_shorter(const std::string& a, const std::string& b) { return characters_of(a).size() < characters_of(b).size(); }
constexpr std::array<Order<std::string>, 3> kOrdersOfTexts{{
    {"in ascending order", [](const std::string& a, const std::string& b) { return a < b; }},
    {"in descending order", [](const std::string& a, const std::string& b) { return a > b; }},
    {"ordered by length", is_shorter},
}};
const auto& orders_of(const Numbers&) { return kOrdersOfNumbers; }
const auto& orders_of(const Texts&) { return kOrdersOfTexts; }

/// Whether the values stand in the order and are not all alike to it.
template <class T>
bool has(const std::vector<T>& values, const Order<T>& order) {
  return std::is_sorted(values.begin(), values.end(), order.before) && !values.empty() && order.before(values.front(), values.back());
}

/// The first order that `expected` has, where `got` has another or none.
template <class T>
Clauses order_words(const std::vector<T>& expected, const std::vector<T>& got) {
  for (const Order<T>& order : orders_of(expected)) {
    if (!has(expected, order)) continue;
    return has(got, order) ? Clauses{} : Clauses{"expected is " + std::string(order.words)};
  }
  return {};
}

template <class T>
bool repeats(const std::vector<T>& values) {
  return std::set<T>(values.begin(), values.end()).size() < values.size();
}

template <class T>
Clauses repeat_words(const std::vector<T>& expected, const std::vector<T>& got) {
  if (repeats(expected) == repeats(got)) return {};
  return {repeats(expected) ? "expected has repeats" : "expected has no repeats"};
}

template <class T>
Clauses of_lists(const std::vector<T>& expected, const std::vector<T>& got) {
  return of_sequences(expected, got, Unit::element) + order_words(expected, got) + repeat_words(expected, got);
}

Clauses of_lists(const Value& expected, const Value& got) {
  const std::size_t a = expected.items.size(), b = got.items.size();
  if (std::max(a, b) > kLongestSequence) return {};
  const auto numbers = numbers_of(expected), other_numbers = numbers_of(got);
  if (numbers && other_numbers) return of_lists(*numbers, *other_numbers);
  const auto texts = texts_of(expected), other_texts = texts_of(got);
  if (texts && other_texts) return of_lists(*texts, *other_texts);
  if (a == b) return {};
  return {"got has " + count(b > a ? b - a : a - b, Unit::element) + (b > a ? " more" : " fewer")};
}

Clauses of_texts(const std::string& expected, const std::string& got) {
  const Texts mine = characters_of(got), theirs = characters_of(expected);
  if (std::max(mine.size(), theirs.size()) > kLongestSequence) return {};
  return of_sequences(theirs, mine, Unit::character);
}

}  // namespace

std::string difference(const Value& expected, const Value& got) {
  const std::string_view kind = kind_words(expected), other = kind_words(got);
  if (kind.empty() || other.empty()) return {};
  if (kind != other) return "expected is " + std::string(kind) + ", got is " + std::string(other);
  if (expected.kind == Value::Kind::string) return joined(of_texts(expected.text, got.text));
  if (expected.kind == Value::Kind::list || expected.kind == Value::Kind::tuple) return joined(of_lists(expected, got));
  const auto number = number_of(expected), other_number = number_of(got);
  return number && other_number ? joined(of_numbers(*number, *other_number)) : std::string();
}

std::string difference_of_literals(std::string_view expected, std::string_view got) {
  const auto a = sandbox::parse_python_literal(expected), b = sandbox::parse_python_literal(got);
  return a && b ? difference(*a, *b) : std::string();
}

std::string difference_of_outputs(std::string_view expected, std::string_view got) {
  const std::string a(detail::trimmed(expected)), b(detail::trimmed(got));
  const auto number = sandbox::parse_python_literal(a), other = sandbox::parse_python_literal(b);
  if (number && other && number_of(*number) && number_of(*other)) return difference(*number, *other);
  return difference(Value::of(a), Value::of(b));
}

}  // namespace fixpoint::agent
