#pragma once

#include "sandbox/detail/check/canonical.h"
#include "sandbox/value.h"

namespace fixpoint::sandbox::detail {

void append_utf8(std::uint32_t code, std::string& out);

// A recursive-descent parser of Python literals (or JSON) over a text that outlives it. Bounded in depth and nodes.
class LiteralParser {
 public:
  LiteralParser(std::string_view text, bool json) : text_(text), json_(json) {}

  bool value(Value& out, std::size_t depth);

  // For the parsers of what surrounds a literal.
  bool take(char c);
  bool looking_at(char c);
  std::string_view word();
  bool at_end();
  std::size_t offset() const { return at_; }
  void seek(std::size_t offset) { at_ = offset; }
  std::string_view rest() const { return text_.substr(at_); }
  bool fail(const char* what);
  const ValueError& error() const { return error_; }

 private:
  void skip_blanks();
  bool term(Value& out, std::size_t depth);
  bool signed_number(Value& out, std::size_t depth);
  bool based_integer(Value& out);
  bool number(Value& out);
  bool escape(std::string& out, bool bytes);
  bool one_string(std::string& out, bool bytes, bool raw);
  bool strings(Value& out, bool bytes, bool raw, std::size_t depth);
  bool goes_on(std::size_t end, std::size_t depth);
  bool sequence(Value& out, std::size_t depth, char close, Value::Kind kind);
  bool parenthesised(Value& out, std::size_t depth);
  bool braces(Value& out, std::size_t depth);
  bool named(Value& out, std::size_t depth);
  bool constructed(std::string_view name, Value& out, std::size_t depth);
  static bool canonical(std::string_view text) { return canonical_decimal(text).has_value(); }

  std::string_view text_;
  bool json_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0;
  ValueError error_;
};

}  // namespace fixpoint::sandbox::detail
