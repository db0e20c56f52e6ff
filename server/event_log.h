#pragma once

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace fixpoint::server {

/// A field of a log line. Never a secret: tokens go by their ids, prompts and programs not at all.
struct LogField {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, double, bool> value;

  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  LogField(std::string_view field, const std::string& text) : name(field), value(std::string_view(text)) {}
  LogField(std::string_view field, const char* text) : name(field), value(std::string_view(text)) {}
  LogField(std::string_view field, bool truth) : name(field), value(truth) {}
  LogField(std::string_view field, double number) : name(field), value(number) {}
  template <class Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
  LogField(std::string_view field, Integer number) : name(field), value(static_cast<std::int64_t>(number)) {}
};

/// One JSON object a line: {"time": …, "event": …, fields}. Thread-safe; a line is written whole.
class EventLog {
 public:
  /// Not owned; -1: nothing is written.
  explicit EventLog(int fd) : fd_(fd) {}
  void write(std::string_view event, std::initializer_list<LogField> fields);

 private:
  std::mutex mutex_;
  int fd_;
};

/// `text` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace fixpoint::server
