#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "evals/benchmark.h"
#include "sandbox/value.h"

namespace fixpoint::evals::detail {

/// The member `name` of a JSON object (its last one, as in Python), or null when this is no object or has none.
[[nodiscard]] const sandbox::Value* member(const sandbox::Value& object, std::string_view name);
/// "an object", "a string"… for messages.
[[nodiscard]] std::string_view json_kind(const sandbox::Value& value);

/// One object of a data file, with typed access that names file, line and field in its errors.
class Row {
 public:
  Row(const std::string& file, std::size_t line, sandbox::Value value) : file_(&file), line_(line), value_(std::move(value)) {}

  [[nodiscard]] std::size_t line() const { return line_; }
  [[nodiscard]] const sandbox::Value& value() const { return value_; }
  [[nodiscard]] bool has(std::string_view field) const { return member(value_, field) != nullptr; }
  /// A string member; an integer is taken by its digits when `integer_too`.
  [[nodiscard]] tl::expected<std::string, DataError> text(std::string_view field, bool integer_too = false) const;
  /// As text(), or "" where the member is absent or null.
  [[nodiscard]] tl::expected<std::string, DataError> text_or_empty(std::string_view field) const;
  [[nodiscard]] tl::expected<std::vector<std::string>, DataError> texts(std::string_view field) const;
  /// As texts(), or none where the member is absent or null.
  [[nodiscard]] tl::expected<std::vector<std::string>, DataError> texts_or_none(std::string_view field) const;
  [[nodiscard]] tl::expected<double, DataError> number(std::string_view field) const;
  [[nodiscard]] tl::expected<const std::vector<sandbox::Value>*, DataError> array(std::string_view field) const;
  /// A string member that is itself JSON.
  [[nodiscard]] tl::expected<sandbox::Value, DataError> json_text(std::string_view field) const;
  [[nodiscard]] DataError error(std::string_view field, std::string message) const;

 private:
  const std::string* file_;
  std::size_t line_;
  sandbox::Value value_;
};

/// Plain bytes of a file that may be gzipped. The result is at most 1 GiB.
[[nodiscard]] tl::expected<std::string, DataError> read_file(const std::filesystem::path& file);
[[nodiscard]] tl::expected<std::string, std::string> inflate_if_compressed(std::string_view bytes);
[[nodiscard]] tl::expected<std::string, std::string> inflate_zlib(std::string_view bytes);
[[nodiscard]] tl::expected<std::string, std::string> decode_base64(std::string_view text);
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

/// The rows of JSON lines (split at '\n' only) or of one JSON array. `file` must outlive the rows. At least one row.
[[nodiscard]] tl::expected<std::vector<Row>, DataError> parse_rows(std::string_view text, const std::string& file);

}  // namespace fixpoint::evals::detail
