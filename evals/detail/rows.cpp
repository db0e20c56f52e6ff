#include "evals/detail/rows.h"

#include <algorithm>
#include <charconv>

namespace fixpoint::evals {

std::string DataError::text() const {
  std::string out = file;
  if (line > 0) out.append(":").append(std::to_string(line));
  out += ": ";
  if (!field.empty()) out += "field '" + field + "': ";
  return out + message;
}

}  // namespace fixpoint::evals

namespace fixpoint::evals::detail {

using sandbox::Value;

const Value* member(const Value& object, std::string_view name) {
  if (object.kind != Value::Kind::dict) return nullptr;
  const Value* found = nullptr;
  for (std::size_t i = 0; i + 1 < object.items.size(); i += 2) {
    if (object.items[i].text == name) found = &object.items[i + 1];
  }
  return found;
}

std::string_view json_kind(const Value& value) {
  switch (value.kind) {
    case Value::Kind::none: return "null";
    case Value::Kind::boolean: return "a boolean";
    case Value::Kind::integer:
    case Value::Kind::real: return "a number";
    case Value::Kind::string: return "a string";
    case Value::Kind::list: return "an array";
    case Value::Kind::dict: return "an object";
    default: return "no JSON value";
  }
}

DataError Row::error(std::string_view field, std::string message) const {
  return {.file = *file_, .line = line_, .field = std::string(field), .message = std::move(message)};
}

tl::expected<std::string, DataError> Row::text(std::string_view field, bool integer_too) const {
  const Value* value = member(value_, field);
  if (value == nullptr) return tl::unexpected(error(field, "is missing"));
  if (value->kind == Value::Kind::string) return value->text;
  if (integer_too && value->kind == Value::Kind::integer) return value->text;
  return tl::unexpected(error(field, "is " + std::string(json_kind(*value)) + ", not a string"));
}

tl::expected<std::string, DataError> Row::text_or_empty(std::string_view field) const {
  const Value* value = member(value_, field);
  if (value == nullptr || value->kind == Value::Kind::none) return std::string();
  return text(field);
}

tl::expected<std::vector<std::string>, DataError> Row::texts(std::string_view field) const {
  const auto items = array(field);
  if (!items) return tl::unexpected(items.error());
  std::vector<std::string> out;
  for (const Value& item : **items) {
    if (item.kind != Value::Kind::string) {
      return tl::unexpected(error(field, "item " + std::to_string(out.size()) + " is " + std::string(json_kind(item)) + ", not a string"));
    }
    out.push_back(item.text);
  }
  return out;
}

tl::expected<std::vector<std::string>, DataError> Row::texts_or_none(std::string_view field) const {
  const Value* value = member(value_, field);
  if (value == nullptr || value->kind == Value::Kind::none) return std::vector<std::string>();
  return texts(field);
}

tl::expected<double, DataError> Row::number(std::string_view field) const {
  const Value* value = member(value_, field);
  if (value == nullptr) return tl::unexpected(error(field, "is missing"));
  if (value->kind == Value::Kind::real) return value->real;
  if (value->kind != Value::Kind::integer) return tl::unexpected(error(field, "is " + std::string(json_kind(*value)) + ", not a number"));
  double out = 0;
  const char* end = value->text.data() + value->text.size();
  if (const auto [stop, code] = std::from_chars(value->text.data(), end, out); code != std::errc() || stop != end) {
    return tl::unexpected(error(field, "is out of range"));
  }
  return out;
}

tl::expected<const std::vector<Value>*, DataError> Row::array(std::string_view field) const {
  const Value* value = member(value_, field);
  if (value == nullptr) return tl::unexpected(error(field, "is missing"));
  if (value->kind == Value::Kind::list) return &value->items;
  return tl::unexpected(error(field, "is " + std::string(json_kind(*value)) + ", not an array"));
}

tl::expected<Value, DataError> Row::json_text(std::string_view field) const {
  const auto source = text(field);
  if (!source) return tl::unexpected(source.error());
  auto value = sandbox::parse_json_value(*source);
  if (value) return *std::move(value);
  return tl::unexpected(error(field, "holds no JSON: " + value.error().what + " at byte " + std::to_string(value.error().offset)));
}

namespace {

tl::expected<Row, DataError> make_row(std::string_view text, const std::string& file, std::size_t line) {
  auto value = sandbox::parse_json_value(text);
  if (!value) {
    return tl::unexpected(DataError{file, line, "", value.error().what + " at byte " + std::to_string(value.error().offset)});
  }
  if (value->kind != Value::Kind::dict) return tl::unexpected(DataError{file, line, "", "is " + std::string(json_kind(*value)) + ", not an object"});
  return Row(file, line, *std::move(value));
}

tl::expected<std::vector<Row>, DataError> rows_of_array(std::string_view text, const std::string& file) {
  auto value = sandbox::parse_json_value(text);
  if (!value) {
    const auto line = 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(value.error().offset), '\n'));
    return tl::unexpected(DataError{file, line, "", value.error().what + " at byte " + std::to_string(value.error().offset)});
  }
  std::vector<Row> rows;
  for (Value& item : value->items) {
    const std::size_t number = rows.size() + 1;
    if (item.kind != Value::Kind::dict) return tl::unexpected(DataError{file, number, "", "is " + std::string(json_kind(item)) + ", not an object"});
    rows.emplace_back(file, number, std::move(item));
  }
  return rows;
}

tl::expected<std::vector<Row>, DataError> rows_of_lines(std::string_view text, const std::string& file) {
  std::vector<Row> rows;
  for (std::size_t start = 0, line = 1; start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view content = text.substr(start, end - start);
    start = end + 1;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto row = make_row(content, file, line);
    if (!row) return tl::unexpected(row.error());
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace

tl::expected<std::vector<Row>, DataError> parse_rows(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return tl::unexpected(DataError{file, 0, "", "is empty"});
  auto rows = text[first] == '[' ? rows_of_array(text, file) : rows_of_lines(text, file);
  if (rows && rows->empty()) return tl::unexpected(DataError{file, 0, "", "has no rows"});
  return rows;
}

}  // namespace fixpoint::evals::detail
