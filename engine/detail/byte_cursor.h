#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/detail/fail.h"
#include "engine/load_error.h"

namespace fixpoint::engine::detail {

static_assert(std::endian::native == std::endian::little, "model files are little-endian and are read in place");

/// Reads little-endian values in turn. The first failure sticks: later reads give zeros, and `error()` tells.
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  [[nodiscard]] std::size_t offset() const { return offset_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - offset_; }
  [[nodiscard]] const std::optional<LoadError>& error() const { return error_; }
  [[nodiscard]] bool ok() const { return !error_; }

  /// `what` is being read, for the message.
  template <class T>
  [[nodiscard]] T read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const auto raw = take(sizeof(T), what);
    if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  /// The next `count` bytes; empty on failure.
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (error_) return {};
    if (count > remaining()) {
      set_error(LoadError::Kind::truncated, std::string(what) + " takes " + std::to_string(count) + " bytes, the file has " +
                                                std::to_string(remaining()) + " more");
      return {};
    }
    const auto taken = bytes_.subspan(offset_, static_cast<std::size_t>(count));
    offset_ += taken.size();
    return taken;
  }

  /// The cursor's own place is what the error names.
  void set_error(LoadError::Kind kind, std::string what) { set_error_at(offset_, kind, std::move(what)); }
  /// For what has been read already: `offset` is where it began.
  void set_error_at(std::size_t offset, LoadError::Kind kind, std::string what) {
    if (!error_) error_ = LoadError{kind, file_, at_offset(offset), std::move(what)};
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t offset_ = 0;
  std::optional<LoadError> error_;
};

}  // namespace fixpoint::engine::detail
