#include "server/event_log.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace fixpoint::server {
namespace {

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof(text) - size, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

std::string value_text(const LogField& field) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) return json_string(*text);
  if (const auto* truth = std::get_if<bool>(&field.value)) return *truth ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&field.value)) return std::to_string(*integer);
  const double number = std::get<double>(field.value);
  return std::isfinite(number) ? nlohmann::json(number).dump() : "null";
}

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void EventLog::write(std::string_view event, std::initializer_list<LogField> fields) {
  if (fd_ < 0) return;
  std::string line = R"({"time":")" + now_text() + R"(","event":)" + json_string(event);
  for (const LogField& field : fields) line.append(",").append(json_string(field.name)).append(":").append(value_text(field));
  line += "}\n";
  const std::scoped_lock lock(mutex_);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written <= 0) return;  // a log that can't be written must not stop the service
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace fixpoint::server
