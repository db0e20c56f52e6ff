#include "server/jsonrpc.h"

#include <limits>

#include "server/json_depth.h"

namespace fixpoint::server::jsonrpc {
namespace {

Json to_json(const Id& id) {
  if (const auto* number = std::get_if<std::int64_t>(&id)) return *number;
  if (const auto* text = std::get_if<std::string>(&id)) return *text;
  return nullptr;
}

std::optional<Id> read_id(const Json& json) {
  if (json.is_null()) return Id{};
  if (json.is_string()) return Id{json.get<std::string>()};
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return Id{static_cast<std::int64_t>(value)};
  }
  if (json.is_number_integer()) return Id{json.get<std::int64_t>()};
  return std::nullopt;
}

tl::unexpected<Refusal> refuse(int code, std::string message, Id id = {}, bool answer = true) {
  return tl::unexpected(Refusal{std::move(id), {code, std::move(message)}, answer});
}

tl::expected<Message, Refusal> read_response(const Json& json, Id id) {
  const auto result = json.find("result");
  const auto error = json.find("error");
  if ((result == json.end()) == (error == json.end())) {
    return refuse(kInvalidRequest, "a response has either a result or an error", std::move(id), false);
  }
  if (result != json.end()) return Response{std::move(id), *result};
  if (!error->is_object() || !error->contains("code") || !(*error)["code"].is_number_integer()) {
    return refuse(kInvalidRequest, "error.code: an integer is missing", std::move(id), false);
  }
  Error value{.code = kInternalError};
  const auto code = (*error)["code"].get<std::int64_t>();
  if (code >= std::numeric_limits<int>::min() && code <= std::numeric_limits<int>::max()) value.code = static_cast<int>(code);
  if (const auto it = error->find("message"); it != error->end() && it->is_string()) value.message = it->get<std::string>();
  if (const auto it = error->find("data"); it != error->end()) value.data = *it;
  return Response{std::move(id), tl::unexpected(std::move(value))};
}

}  // namespace

tl::expected<Message, Refusal> parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return refuse(kInvalidRequest, "a message of " + std::to_string(text.size()) + " bytes; at most " + std::to_string(limits.bytes));
  }
  if (json_depth(text) > limits.depth) {
    return refuse(kInvalidRequest, "nested deeper than " + std::to_string(limits.depth) + " levels");
  }
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& failure) {
    return refuse(kParseError, "not JSON in UTF-8, at byte " + std::to_string(failure.byte));
  } catch (const Json::exception&) {  // a number beyond all bounds
    return refuse(kParseError, "not JSON: a number out of range");
  }
  if (json.is_array()) return refuse(kInvalidRequest, "batches are not accepted: one message a frame");
  if (!json.is_object()) return refuse(kInvalidRequest, "not an object");
  std::optional<Id> id;
  if (const auto it = json.find("id"); it != json.end()) {
    id = read_id(*it);
    if (!id) return refuse(kInvalidRequest, "id: not null, an integer or a string");
  }
  const auto version = json.find("jsonrpc");
  if (version == json.end() || *version != "2.0") {
    return refuse(kInvalidRequest, "jsonrpc: not \"2.0\"", id.value_or(Id{}), json.contains("method"));
  }
  const auto method = json.find("method");
  if (method == json.end()) {
    if (!id || !(json.contains("result") || json.contains("error"))) return refuse(kInvalidRequest, "method: missing", id.value_or(Id{}));
    return read_response(json, *std::move(id));
  }
  if (!method->is_string()) return refuse(kInvalidRequest, "method: not a string", id.value_or(Id{}));
  Request request{std::move(id), method->get<std::string>()};
  if (const auto params = json.find("params"); params != json.end()) {
    if (!params->is_object() && !params->is_null()) {
      return refuse(kInvalidParams, "params: not an object", request.id.value_or(Id{}), request.id.has_value());
    }
    request.params = std::move(*params);
  }
  return request;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
std::string quoted(std::string_view text) { return dump(Json(text)); }

std::string result(const Id& id, const Json& value) { return dump({{"jsonrpc", "2.0"}, {"id", to_json(id)}, {"result", value}}); }

std::string error(const Id& id, const Error& error) {
  Json body{{"code", error.code}, {"message", error.message}};
  if (!error.data.is_null()) body["data"] = error.data;
  return dump({{"jsonrpc", "2.0"}, {"id", to_json(id)}, {"error", std::move(body)}});
}

std::string request(const Id& id, std::string_view method, const Json& params) {
  return dump({{"jsonrpc", "2.0"}, {"id", to_json(id)}, {"method", method}, {"params", params}});
}

std::string notification(std::string_view method, const Json& params) {
  return dump({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
}

}  // namespace fixpoint::server::jsonrpc
