#include "server/json_reader.h"

#include "server/json_depth.h"
#include "server/openai.h"

namespace fixpoint::server {

using nlohmann::json;

tl::expected<json, ApiError> parse_body(std::string_view body) {
  if (json_depth(body) > kMaxJsonDepth) {
    return tl::unexpected(ApiError{.message = "the body nests deeper than " + std::to_string(kMaxJsonDepth) + " levels"});
  }
  try {
    json value = json::parse(body);
    if (!value.is_object()) return tl::unexpected(ApiError{.message = "the body must be a JSON object"});
    return value;
  } catch (const json::parse_error& error) {
    return tl::unexpected(ApiError{.message = "the body is no JSON: fault at byte " + std::to_string(error.byte)});
  } catch (const json::out_of_range&) {
    return tl::unexpected(ApiError{.message = "the body is no JSON: a number out of range"});
  }
}

const json* JsonReader::find(std::string_view name) const {
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::fail(std::string_view param, const std::string& message) {
  if (!error_) error_ = ApiError{.message = std::string(param) + ": " + message, .param = std::string(param)};
}

void JsonReader::text(std::string_view name, std::string& out) {
  const json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fail(name, "must be a string");
  out = value->get<std::string>();
}

void JsonReader::truth(std::string_view name, bool& out) {
  const json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(name, "must be true or false");
  out = value->get<bool>();
}

std::optional<std::int64_t> JsonReader::read_integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool too_large = value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value->is_number_integer() || too_large || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high) {
    fail(name, "must be an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return value->get<std::int64_t>();
}

void JsonReader::real(std::string_view name, float& out, double low, double high) {
  const json* value = find(name);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= low && number <= high)) return fail(name, "must be a number from " + json(low).dump() + " to " + json(high).dump());
  out = static_cast<float>(number);
}

}  // namespace fixpoint::server
