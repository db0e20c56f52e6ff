#include "sandbox/detail/check/message.h"

#include "sandbox/detail/check/marshal.h"

#include <cstring>

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::size_t length_bytes = 4;

void write_length(std::string& message) {
  const auto size = static_cast<std::uint32_t>(message.size() - length_bytes);
  for (unsigned i = 0; i < length_bytes; ++i) message[i] = static_cast<char>((size >> (8 * i)) & 0xFF);
}

Value named_arguments(const CallQuestion& question) {
  Value out;
  out.kind = Value::Kind::dict;
  for (const auto& [key, value] : question.named) {
    out.items.push_back(Value::of(key));
    out.items.push_back(value);
  }
  return out;
}

std::optional<std::string> marshalled_bytes(const CallQuestion& question, const Value& nonce) {
  std::string out(length_bytes, '\0');
  out += marshalled;
  marshal_tuple_to(5, out);
  bool whole = marshal_to(Value::of("plain_call"), out) && marshal_to(nonce, out) && marshal_to(Value::of(std::string(question.function)), out);
  marshal_tuple_to(question.arguments.size(), out);
  for (const Value& argument : question.arguments) whole = whole && marshal_to(argument, out);
  if (!whole || !marshal_to(named_arguments(question), out)) return std::nullopt;
  write_length(out);
  return out;
}

}  // namespace

std::string message_bytes(const Value& message) {
  std::string out(length_bytes, '\0');
  encode_to(message, out);
  write_length(out);
  return out;
}

std::string message_bytes(const CallQuestion& question, const Value& nonce) {
  if (question.python) {
    if (auto bytes = marshalled_bytes(question, nonce)) return *std::move(bytes);
  }
  constexpr bool with_arguments = false;  // whether the answer says how the call changed its arguments
  return message_bytes(Value::tuple_of({Value::of("call"), nonce, Value::of(std::string(question.function)), Value::tuple_of(question.arguments),
                                        named_arguments(question), Value::of(with_arguments)}));
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
  const auto body = std::string_view(buffer_).substr(at_ + 4, size);
  auto value = body.starts_with(marshalled) ? unmarshal(body.substr(1)) : decode(body);
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
