#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/detail/json_document.h"
#include "engine/load_error.h"

namespace fixpoint::engine::detail {

/// Typed access to a JSON object's fields; null counts as absent. The first missing, mistyped or absurd value sticks as
/// `error()`; reads after it give defaults, so that a reader can ask for all its fields and look once.
class JsonFields {
 public:
  /// `path` stands before the field's name in messages: "rope_scaling." or "".
  JsonFields(const Json& object, const std::string& file, std::string path = "")
      : object_(object), file_(file), path_(std::move(path)) {}

  [[nodiscard]] const std::optional<LoadError>& error() const { return error_; }
  /// nullptr where the field is absent or null, or where this is no object.
  [[nodiscard]] const Json* find(const char* name) const;

  [[nodiscard]] std::optional<std::int64_t> integer(const char* name, std::int64_t low, std::int64_t high);
  [[nodiscard]] std::int64_t required_integer(const char* name, std::int64_t low, std::int64_t high);
  [[nodiscard]] std::optional<float> real(const char* name);  ///< finite; integers count
  [[nodiscard]] std::optional<bool> boolean(const char* name);
  [[nodiscard]] std::optional<std::string> text(const char* name);
  /// One integer or a list of them; empty where the field is absent.
  [[nodiscard]] std::vector<std::int64_t> integers(const char* name, std::int64_t low, std::int64_t high);

  void fail(LoadError::Kind kind, const std::string& name, std::string detail);
  /// Takes over another reader's error, if this has none.
  void adopt(const JsonFields& inner);

 private:
  [[nodiscard]] std::optional<std::int64_t> as_integer(const Json& value, const char* name, std::int64_t low, std::int64_t high);

  const Json& object_;
  const std::string& file_;
  std::string path_;
  std::optional<LoadError> error_;
};

}  // namespace fixpoint::engine::detail
