// Values as text for people: Python's notation, bounded.
#include "sandbox/value.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace fixpoint::sandbox {
namespace {

using Kind = Value::Kind;

// Stops adding once far over the bound; counts what it left out only roughly after that, exactly before.
class Printer {
 public:
  explicit Printer(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void print(const Value& value) {
    if (full()) {
      ++left_out_values_;
      return;
    }
    switch (value.kind) {
      case Kind::none: out_ += "None"; return;
      case Kind::undefined: out_ += "undefined"; return;
      case Kind::boolean: out_ += value.boolean ? "True" : "False"; return;
      case Kind::integer: out_ += value.text; return;
      case Kind::real: real(value.real); return;
      case Kind::complex: complex(value); return;
      case Kind::decimal: out_ += "Decimal('" + value.text + "')"; return;
      case Kind::string: quoted(value.text, false); return;
      case Kind::bytes:
        out_ += 'b';
        quoted(value.text, true);
        return;
      case Kind::list: sequence(value, "[", "]"); return;
      case Kind::tuple: sequence(value, "(", value.items.size() == 1 ? ",)" : ")"); return;
      case Kind::set: value.items.empty() ? void(out_ += "set()") : sequence(value, "{", "}"); return;
      case Kind::frozenset: value.items.empty() ? void(out_ += "frozenset()") : sequence(value, "frozenset({", "})"); return;
      case Kind::dict: dict(value); return;
      case Kind::named:
        out_ += value.text + '(';
        if (!value.items.empty()) print(value.items.front());
        out_ += ')';
        return;
      case Kind::object: out_ += "<" + value.text + " object>"; return;
    }
  }

  std::string finish() {
    if (out_.size() <= max_bytes_ && left_out_values_ == 0) return std::move(out_);
    std::size_t keep = std::min(out_.size(), max_bytes_);
    while (keep > 0 && keep < out_.size() && (static_cast<unsigned char>(out_[keep]) & 0xC0) == 0x80) --keep;
    const std::size_t left_out = out_.size() - keep;
    out_.resize(keep);
    out_ += "… (" + std::to_string(left_out) + " more bytes";
    if (left_out_values_ > 0) out_ += " and " + std::to_string(left_out_values_) + " more values";
    return std::move(out_) + ")";
  }

 private:
  bool full() const { return out_.size() > max_bytes_; }

  void real(double value) {
    if (std::isnan(value)) {
      out_ += "nan";
      return;
    }
    if (std::isinf(value)) {
      out_ += value < 0 ? "-inf" : "inf";
      return;
    }
    char text[400];
    const double size = std::fabs(value);
    const bool plain = value == 0 || (size >= 1e-4 && size < 1e16);
    const auto end = std::to_chars(text, text + sizeof text, value, plain ? std::chars_format::fixed : std::chars_format::scientific).ptr;
    const std::string_view shown(text, static_cast<std::size_t>(end - text));
    out_ += shown;
    if (plain && shown.find('.') == shown.npos) out_ += ".0";
  }

  void complex(const Value& value) {
    out_ += '(';
    real(value.real);
    if (!std::signbit(value.imaginary)) out_ += '+';
    real(value.imaginary);
    out_ += "j)";
  }

  void quoted(const std::string& text, bool as_bytes) {
    const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
    out_ += quote;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (full()) {
        left_out_values_ += 1;
        break;
      }
      character(text[i], quote, as_bytes);
    }
    out_ += quote;
  }

  void character(char c, char quote, bool as_bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (c == '\r') {
      out_ += "\\r";
    } else if (byte < 0x20 || byte == 0x7f || (as_bytes && byte >= 0x80)) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out_ += escaped;
    } else {
      out_ += c;
    }
  }

  void sequence(const Value& value, const char* open, const char* close) {
    out_ += open;
    bool first = true;
    for (const Value& item : value.items) {
      if (!first) out_ += ", ";
      first = false;
      print(item);
    }
    out_ += close;
  }

  void dict(const Value& value) {
    out_ += '{';
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
      if (i > 0) out_ += ", ";
      print(value.items[i]);
      out_ += ": ";
      print(value.items[i + 1]);
    }
    out_ += '}';
  }

  std::size_t max_bytes_;
  std::size_t left_out_values_ = 0;
  std::string out_;
};

}  // namespace

std::string to_text(const Value& value, std::size_t max_bytes) {
  Printer printer(max_bytes);
  printer.print(value);
  return printer.finish();
}

}  // namespace fixpoint::sandbox
