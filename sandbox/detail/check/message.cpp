#include "sandbox/detail/check/message.h"

#include <cstring>

namespace fixpoint::sandbox::detail {

std::string message_bytes(const Value& message) {
  std::string out(4, '\0');
  encode_to(message, out);
  const auto size = static_cast<std::uint32_t>(out.size() - 4);
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<char>((size >> (8 * i)) & 0xFF);
  return out;
}

tl::expected<std::optional<Value>, ValueError> MessageReader::next() {
  if (error_) return tl::unexpected(*error_);
  if (buffered() < 4) return std::optional<Value>{};
  std::uint32_t size = 0;
  for (unsigned i = 0; i < 4; ++i) size |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[at_ + i])) << (8 * i);
  if (size > max_frame_bytes_) {
    error_ = ValueError{at_, "a frame of " + std::to_string(size) + " bytes"};
    return tl::unexpected(*error_);
  }
  if (buffered() < 4 + std::size_t{size}) return std::optional<Value>{};
  auto value = decode(std::string_view(buffer_).substr(at_ + 4, size));
  at_ += 4 + std::size_t{size};
  if (at_ > (1u << 16) && at_ * 2 > buffer_.size()) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  if (!value) {
    error_ = value.error();
    return tl::unexpected(*error_);
  }
  return std::optional<Value>(std::move(*value));
}

tl::expected<Answer, ValueError> parse_answer(Value message) {
  const bool shaped = message.kind == Value::Kind::tuple && message.items.size() == 4 &&
                      message.items[0].kind == Value::Kind::string && message.items[1].kind == Value::Kind::bytes;
  if (!shaped) return tl::unexpected(ValueError{0, "no answer"});
  Answer answer;
  if (message.items[0].text == "raise") {
    answer.raised = true;
  } else if (message.items[0].text != "value") {
    return tl::unexpected(ValueError{0, "no answer"});
  }
  answer.nonce = std::move(message.items[1].text);
  answer.value = std::move(message.items[2]);
  answer.changed = std::move(message.items[3]);
  return answer;
}

}  // namespace fixpoint::sandbox::detail
