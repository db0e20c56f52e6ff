#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "server/http.h"

namespace fixpoint::server {

/// The object that a request's body holds; an error that says what is wrong with the text and where.
[[nodiscard]] tl::expected<nlohmann::json, ApiError> parse_body(std::string_view body);

/// Reads fields of a JSON object into values. The first fault is kept; what is absent or null leaves the value alone.
class JsonReader {
 public:
  explicit JsonReader(const nlohmann::json& object) : object_(&object) {}

  [[nodiscard]] const nlohmann::json* find(std::string_view name) const;
  void text(std::string_view name, std::string& out);
  void truth(std::string_view name, bool& out);
  /// Within [low, high], both ends included.
  template <class Integer>
  void integer(std::string_view name, Integer& out, std::int64_t low, std::int64_t high) {
    if (const auto value = read_integer(name, low, high)) out = static_cast<Integer>(*value);
  }
  template <class Integer>
  void integer(std::string_view name, std::optional<Integer>& out, std::int64_t low, std::int64_t high) {
    if (const auto value = read_integer(name, low, high)) out = static_cast<Integer>(*value);
  }
  void real(std::string_view name, float& out, double low, double high);

  void fail(std::string_view param, const std::string& message);
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] const ApiError& error() const { return *error_; }

 private:
  [[nodiscard]] std::optional<std::int64_t> read_integer(std::string_view name, std::int64_t low, std::int64_t high);
  const nlohmann::json* object_;
  std::optional<ApiError> error_;
};

}  // namespace fixpoint::server
