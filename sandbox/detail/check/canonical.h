#pragma once

#include "sandbox/value.h"

#include <optional>
#include <string>
#include <vector>

namespace fixpoint::sandbox::detail {

// One text for each number, so that 1, 1.0, True and Decimal('1.00') share theirs; nothing for nan and for complex numbers
// with a nan. Exact: a double is written out as the decimal fraction that it is.
std::optional<std::string> canonical_number(const Value& value);

// A text that two values share exactly when Python's == holds between them (nan: never). Containers without order are sorted.
std::string canonical_key(const Value& value);

struct CanonicalMember {
  std::string key;
  std::size_t index = 0;  // in `items`
  bool operator==(const CanonicalMember& other) const { return key == other.key; }
};
// Every `stride`-th item by its key, sorted.
std::vector<CanonicalMember> canonical_members(const std::vector<Value>& items, std::size_t stride);

// A decimal number's text ("-12.50e3") without superfluous zeros and exponent; nothing when it is no finite number or would be
// longer than about 5000 digits.
std::optional<std::string> canonical_decimal(std::string_view text);

}  // namespace fixpoint::sandbox::detail
