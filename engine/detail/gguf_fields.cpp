#include "engine/detail/gguf_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {

using Kind = LoadError::Kind;

void GgufFields::fail(Kind kind, std::string_view key, std::string detail) {
  if (!error_) error_ = LoadError{kind, file_, "metadata " + shown(key), std::move(detail)};
}

std::optional<std::int64_t> GgufFields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const auto* value = gguf_.find(key);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (const auto* u = std::get_if<std::uint64_t>(value)) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    number = static_cast<std::int64_t>(*u < kMost ? *u : kMost);
  } else if (const auto* i = std::get_if<std::int64_t>(value)) {
    number = *i;
  } else {
    fail(Kind::malformed, key, std::holds_alternative<GgufArray>(*value) ? "one value per layer is not supported" : "is no integer");
    return std::nullopt;
  }
  if (number < low || number > high) {
    fail(Kind::malformed, key,
         std::to_string(number) + " is outside " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return number;
}

std::int64_t GgufFields::required_integer(std::string_view key, std::int64_t low, std::int64_t high) {
  if (!has(key)) fail(Kind::missing, key, "is missing");
  return integer(key, low, high).value_or(low);
}

std::optional<float> GgufFields::real(std::string_view key) {
  const auto* value = gguf_.find(key);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<double>(value);
  if (number == nullptr || !std::isfinite(*number) || std::abs(*number) > double{std::numeric_limits<float>::max()}) {
    fail(Kind::malformed, key, "is no finite number");
    return std::nullopt;
  }
  return static_cast<float>(*number);
}

std::optional<bool> GgufFields::boolean(std::string_view key) {
  const auto* value = gguf_.find(key);
  if (value == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) {
    fail(Kind::malformed, key, "is no boolean");
    return std::nullopt;
  }
  return *flag;
}

std::optional<std::string_view> GgufFields::text(std::string_view key) {
  const auto* value = gguf_.find(key);
  if (value == nullptr) return std::nullopt;
  const auto* string = std::get_if<std::string_view>(value);
  if (string == nullptr) {
    fail(Kind::malformed, key, "is no string");
    return std::nullopt;
  }
  return *string;
}

const GgufArray* GgufFields::array(std::string_view key, GgufType type) {
  const auto* value = gguf_.find(key);
  if (value == nullptr) return nullptr;
  const auto* found = std::get_if<GgufArray>(value);
  if (found == nullptr || found->type != type) {
    fail(Kind::malformed, key, type == GgufType::string ? "is no array of strings" : "is no array of the right type");
    return nullptr;
  }
  return found;
}

}  // namespace fixpoint::engine::detail
