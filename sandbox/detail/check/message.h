#pragma once

#include "sandbox/value.h"

#include <optional>
#include <utility>

namespace fixpoint::sandbox::detail {

// A message between judge and driver: a length (4 bytes, little endian) and one value in wire form, or in CPython's own form
// (marshal.h) with `marshalled` before it.
std::string message_bytes(const Value& message);

inline constexpr char marshalled = 'M';  // no tag of the wire form

// Asks a driver to call a function. One of Python is asked in its own form where the arguments have it, and then answers in it
// where the result has it.
struct CallQuestion {
  std::string_view function;
  const std::vector<Value>& arguments;
  const std::vector<std::pair<std::string, Value>>& named;
  bool python = false;
};
std::string message_bytes(const CallQuestion& question, const Value& nonce);

// Cuts what a driver wrote into messages. The bytes come from a hostile process: lengths are checked before memory is taken,
// and after the first error nothing more is read.
class MessageReader {
 public:
  explicit MessageReader(std::size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message; nothing while more bytes are needed; an error for what is no message.
  [[nodiscard]] tl::expected<std::optional<Value>, ValueError> next();
  std::size_t buffered() const { return buffer_.size() - at_; }

 private:
  std::size_t max_frame_bytes_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::optional<ValueError> error_;
};

// A driver's answer to one question.
struct Answer {
  bool raised = false;
  std::string nonce;
  Value value;    // what came back, or the record of an exception
  Value changed;  // the arguments after the call where it changed them, or none
};
[[nodiscard]] tl::expected<Answer, ValueError> parse_answer(Value message);

}  // namespace fixpoint::sandbox::detail
