#include <nlohmann/json.hpp>
#include <utility>

#include "agent/detail/json_fields.h"
#include "agent/detail/json_text.h"
#include "agent/event.h"

namespace fixpoint::agent {
namespace {

using detail::Json;

Json event_object(const Event& event) {
  Json object = std::visit([](const auto& it) { return detail::write_json(it); }, event);
  object["type"] = kind_of(event);
  return object;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <std::size_t I = 0>
tl::expected<Event, std::string> read_event(const std::string& type, const Json& json) {
  if constexpr (I == std::variant_size_v<Event>) {
    return tl::unexpected("type: unknown event '" + type + "'");
  } else {
    Event event(std::in_place_index<I>);
    if (kind_of(event) != type) return read_event<I + 1>(type, json);
    // Every other field has a value where it is not said; a session without a task is none.
    if (std::holds_alternative<SessionStarted>(event) && !json.contains("task")) return tl::unexpected(std::string("session_started.task: missing"));
    std::string error;
    detail::FieldReader reader{json, &error};
    detail::fields(reader, std::get<I>(event));
    if (!error.empty()) return tl::unexpected(type + "." + error);
    return event;
  }
}

tl::expected<Event, std::string> event_of(const Json& json) {
  const auto type = json.is_object() ? json.find("type") : json.end();
  if (!json.is_object() || type == json.end() || !type->is_string()) return tl::unexpected(std::string("type: missing"));
  return read_event(type->get<std::string>(), json);
}

}  // namespace

std::string to_json(const Event& event) { return dump(event_object(event)); }

std::string to_json(const Stamped& stamped) {
  Json object = event_object(stamped.event);
  object["session"] = stamped.session;
  object["seq"] = stamped.seq;
  object["at_ms"] = stamped.at.time_since_epoch().count();
  return dump(object);
}

tl::expected<Event, std::string> parse_event(std::string_view text) {
  const auto json = detail::parse_json(text);
  if (!json) return tl::unexpected(json.error());
  return event_of(*json);
}

tl::expected<Stamped, std::string> parse_stamped(std::string_view text) {
  const auto json = detail::parse_json(text);
  if (!json) return tl::unexpected(json.error());
  tl::expected<Event, std::string> event = event_of(*json);
  if (!event) return tl::unexpected(event.error());
  Stamped stamped{.event = *std::move(event)};
  std::string error;
  std::int64_t at = 0;
  detail::FieldReader reader{*json, &error};
  reader("session", stamped.session);
  reader("seq", stamped.seq);
  reader("at_ms", at);
  if (!error.empty()) return tl::unexpected(error);
  stamped.at = std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(at));
  return stamped;
}

}  // namespace fixpoint::agent
