#include "agent/detail/sse.h"

namespace fixpoint::agent::detail {

bool SseParser::push(std::string_view bytes, const std::function<void(std::string_view)>& on_data) {
  for (const char c : bytes) {
    const bool second_half = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (second_half) continue;
    if (c == '\n' || c == '\r') {
      take_line(line_, on_data);
      line_.clear();
      continue;
    }
    if (line_.size() + data_.size() >= kMaxEventBytes) return false;
    line_ += c;
  }
  return true;
}

void SseParser::finish(const std::function<void(std::string_view)>& on_data) {
  if (!line_.empty()) take_line(line_, on_data);
  line_.clear();
  take_line({}, on_data);
}

void SseParser::take_line(std::string_view line, const std::function<void(std::string_view)>& on_data) {
  if (line.empty()) {
    if (has_data_) on_data(data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  if (!line.starts_with("data:")) return;
  line.remove_prefix(5);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
}

}  // namespace fixpoint::agent::detail
