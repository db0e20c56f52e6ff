#pragma once

#include "sandbox/value.h"

namespace fixpoint::sandbox::detail {

// What readers of a value's bytes share: the place, the bounds of depth and number, the first error.
class ValueReader {
 public:
  explicit ValueReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  bool fail(const char* what) {
    if (error_.what.empty()) error_ = {at_, what};
    return false;
  }
  const ValueError& error() const { return error_; }

 protected:
  // Before each value: whether there may be one more, at this depth, and is.
  bool begin_value(std::size_t depth) {
    if (depth > max_value_depth) return fail("nested too deeply");
    if (++nodes_ > max_value_nodes) return fail("too many values");
    return !at_end() || fail("ends inside a value");
  }
  std::size_t left() const { return bytes_.size() - at_; }
  bool take_text(std::size_t size, std::string& out) {
    if (size > left()) return fail("text longer than the rest");
    out.assign(bytes_.substr(at_, size));
    at_ += size;
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;

 private:
  std::size_t nodes_ = 0;
  ValueError error_;
};

// The one value that `bytes` must be, by a Reader with `value(Value&, depth)`.
template <typename Reader>
tl::expected<Value, ValueError> whole_value(std::string_view bytes) {
  Reader reader(bytes);
  Value out;
  if (reader.value(out, 0) && !reader.at_end()) reader.fail("bytes after the value");
  if (!reader.error().what.empty()) return tl::unexpected(reader.error());
  return out;
}

}  // namespace fixpoint::sandbox::detail
