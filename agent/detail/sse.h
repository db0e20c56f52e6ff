#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fixpoint::agent::detail {

/// Server-sent events (the "data:" lines of an answer that is streamed), fed in pieces of any size. Comments and other
/// fields are skipped; several data lines of one event are joined with newlines.
class SseParser {
 public:
  static constexpr std::size_t kMaxEventBytes = std::size_t{4} << 20;

  /// Calls `on_data` for each event that is whole. False: an event is longer than kMaxEventBytes; nothing more is read.
  [[nodiscard]] bool push(std::string_view bytes, const std::function<void(std::string_view)>& on_data);
  /// The last event, where a server ends without the empty line behind it.
  void finish(const std::function<void(std::string_view)>& on_data);

 private:
  void take_line(std::string_view line, const std::function<void(std::string_view)>& on_data);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace fixpoint::agent::detail
