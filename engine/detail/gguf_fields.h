#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/detail/gguf.h"
#include "engine/load_error.h"

namespace fixpoint::engine::detail {

/// Typed access to a GGUF file's metadata. The first missing, mistyped or absurd value sticks as `error()`; reads after it
/// give defaults, so that a reader can ask for all its fields and look once.
class GgufFields {
 public:
  GgufFields(const Gguf& gguf, const std::string& file) : gguf_(gguf), file_(file) {}

  [[nodiscard]] const std::optional<LoadError>& error() const { return error_; }
  [[nodiscard]] bool has(std::string_view key) const { return gguf_.find(key) != nullptr; }

  /// nullopt where the key is absent; an error where it is no integer in [low, high].
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  [[nodiscard]] std::int64_t required_integer(std::string_view key, std::int64_t low, std::int64_t high);
  [[nodiscard]] std::optional<float> real(std::string_view key);  ///< finite
  [[nodiscard]] std::optional<bool> boolean(std::string_view key);
  [[nodiscard]] std::optional<std::string_view> text(std::string_view key);
  /// nullptr where the key is absent; an error where it is no array of `type`.
  [[nodiscard]] const GgufArray* array(std::string_view key, GgufType type);

  void fail(LoadError::Kind kind, std::string_view key, std::string detail);

 private:
  const Gguf& gguf_;
  const std::string& file_;
  std::optional<LoadError> error_;
};

}  // namespace fixpoint::engine::detail
