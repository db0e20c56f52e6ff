#include "engine/detail/json_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {

using Kind = LoadError::Kind;

void JsonFields::fail(Kind kind, const std::string& name, std::string detail) {
  if (!error_) error_ = LoadError{kind, file_, "field " + shown(path_ + name), std::move(detail)};
}

void JsonFields::adopt(const JsonFields& inner) {
  if (!error_) error_ = inner.error_;
}

const Json* JsonFields::find(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::optional<std::int64_t> JsonFields::as_integer(const Json& value, const char* name, std::int64_t low, std::int64_t high) {
  if (!value.is_number_integer()) {
    fail(Kind::malformed, name, "is no integer");
    return std::nullopt;
  }
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost);
  const auto number = huge ? kMost : value.get<std::int64_t>();
  if (number < low || number > high) {
    fail(Kind::malformed, name,
         std::to_string(number) + " is outside " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> JsonFields::integer(const char* name, std::int64_t low, std::int64_t high) {
  const auto* value = find(name);
  return value == nullptr ? std::nullopt : as_integer(*value, name, low, high);
}

std::int64_t JsonFields::required_integer(const char* name, std::int64_t low, std::int64_t high) {
  if (find(name) == nullptr) fail(Kind::missing, name, "is missing");
  return integer(name, low, high).value_or(low);
}

std::optional<float> JsonFields::real(const char* name) {
  const auto* value = find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(std::abs(number) <= double{std::numeric_limits<float>::max()})) {
    fail(Kind::malformed, name, "is no finite number");
    return std::nullopt;
  }
  return static_cast<float>(number);
}

std::optional<bool> JsonFields::boolean(const char* name) {
  const auto* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) {
    fail(Kind::malformed, name, "is no boolean");
    return std::nullopt;
  }
  return value->get<bool>();
}

std::optional<std::string> JsonFields::text(const char* name) {
  const auto* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    fail(Kind::malformed, name, "is no string");
    return std::nullopt;
  }
  return value->get<std::string>();
}

std::vector<std::int64_t> JsonFields::integers(const char* name, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> out;
  const auto* value = find(name);
  if (value == nullptr) return out;
  const auto add = [&](const Json& item) {
    if (const auto number = as_integer(item, name, low, high)) out.push_back(*number);
  };
  if (value->is_array()) {
    for (const auto& item : *value) add(item);
  } else {
    add(*value);
  }
  return out;
}

}  // namespace fixpoint::engine::detail
