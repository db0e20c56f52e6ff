#include "sandbox/value.h"

#include "sandbox/detail/check/value_reader.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace fixpoint::sandbox {
namespace {

using Kind = Value::Kind;

struct ContainerTag {
  Kind kind;
  char tag;
};
constexpr ContainerTag container_tags[] = {
    {Kind::list, 'l'}, {Kind::tuple, 't'}, {Kind::set, 'S'}, {Kind::frozenset, 'z'}, {Kind::dict, 'd'}};
constexpr ContainerTag text_tags[] = {
    {Kind::integer, 'i'}, {Kind::decimal, 'D'}, {Kind::string, 's'}, {Kind::bytes, 'b'}};

char tag_of(Kind kind) {
  for (const auto& entry : container_tags) {
    if (entry.kind == kind) return entry.tag;
  }
  for (const auto& entry : text_tags) {
    if (entry.kind == kind) return entry.tag;
  }
  return '?';
}

void append_sized(char tag, std::string_view text, std::string& out) {
  out += tag;
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

void append_real(double value, std::string& out) {
  char text[48];
  if (std::isnan(value)) {
    append_sized('f', "nan", out);
  } else {
    const int length = std::snprintf(text, sizeof text, "%a", value);
    append_sized('f', std::string_view(text, static_cast<std::size_t>(length)), out);
  }
}

class Decoder : public detail::ValueReader {
 public:
  using ValueReader::ValueReader;

  bool value(Value& out, std::size_t depth) {
    if (!begin_value(depth)) return false;
    const char tag = bytes_[at_++];
    switch (tag) {
      case 'N': out.kind = Kind::none; return true;
      case 'U': out.kind = Kind::undefined; return true;
      case 'T': out.kind = Kind::boolean; out.boolean = true; return true;
      case 'F': out.kind = Kind::boolean; return true;
      case 'f': out.kind = Kind::real; return real(out.real);
      case 'c':
        out.kind = Kind::complex;
        return part(out.real) && part(out.imaginary);
      case 'n': return named(out, depth);
      case 'o': return object(out);
      default: break;
    }
    for (const auto& entry : text_tags) {
      if (entry.tag != tag) continue;
      out.kind = entry.kind;
      return sized(out.text) && check_text(out);
    }
    for (const auto& entry : container_tags) {
      if (entry.tag != tag) continue;
      out.kind = entry.kind;
      return items(out, depth);
    }
    --at_;
    return fail("unknown tag");
  }

 private:
  bool length(std::size_t& out) {
    const char* first = bytes_.data() + at_;
    const char* last = bytes_.data() + bytes_.size();
    const auto [end, status] = std::from_chars(first, last, out);
    if (status != std::errc{} || end == first || end == last || *end != ':') return fail("bad length");
    at_ += static_cast<std::size_t>(end - first) + 1;
    return true;
  }

  bool sized(std::string& out) {
    std::size_t size = 0;
    return length(size) && take_text(size, out);
  }

  bool part(double& out) {
    if (at_ >= bytes_.size() || bytes_[at_] != 'f') return fail("complex without its parts");
    ++at_;
    return real(out);
  }

  bool real(double& out) {
    std::string text;
    if (!sized(text)) return false;
    if (text.empty() || text.size() > 64 || text.find_first_not_of("0123456789abcdefABCDEFpPxXinfINFty+-.") != text.npos) {
      return fail("not a real number");
    }
    char* end = nullptr;
    out = std::strtod(text.c_str(), &end);
    return *end == '\0' || fail("not a real number");
  }

  bool check_text(const Value& value) {
    if (value.kind == Kind::integer) {
      std::string_view digits = value.text;
      if (digits.starts_with('-')) digits.remove_prefix(1);
      const bool hex = digits.starts_with("0x");
      if (hex) digits.remove_prefix(2);
      const char* allowed = hex ? "0123456789abcdef" : "0123456789";
      if (digits.empty() || digits.find_first_not_of(allowed) != digits.npos) return fail("not an integer");
      if (digits.size() > 1 && digits.front() == '0') return fail("integer with a leading zero");
      if (value.text == "-0") return fail("integer is minus zero");
    }
    if (value.kind == Kind::decimal && value.text.find_first_not_of("0123456789+-.EeNaInfsity") != value.text.npos) {
      return fail("not a decimal");
    }
    return true;
  }

  bool items(Value& out, std::size_t depth) {
    std::size_t count = 0;
    if (!length(count)) return false;
    // Every value takes a byte at least: a count beyond that is a lie, found before memory is taken for it.
    const std::size_t per_item = out.kind == Kind::dict ? 2 : 1;
    if (count > (left()) / per_item) return fail("more items than bytes");
    out.items.reserve(std::min<std::size_t>(count * per_item, 1024));
    for (std::size_t i = 0; i < count * per_item; ++i) {
      if (!value(out.items.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool named(Value& out, std::size_t depth) {
    out.kind = Kind::named;
    return sized(out.text) && value(out.items.emplace_back(), depth + 1);
  }

  bool object(Value& out) {
    out.kind = Kind::object;
    std::size_t handle = 0;
    if (!sized(out.text) || !length(handle)) return false;
    out.number = handle;
    return true;
  }
};

}  // namespace

Value Value::of(bool value) {
  Value out;
  out.kind = Kind::boolean;
  out.boolean = value;
  return out;
}

Value Value::of(std::int64_t value) {
  Value out;
  out.kind = Kind::integer;
  out.text = std::to_string(value);
  return out;
}

Value Value::of(double value) {
  Value out;
  out.kind = Kind::real;
  out.real = value;
  return out;
}

Value Value::of(std::string value) {
  Value out;
  out.kind = Kind::string;
  out.text = std::move(value);
  return out;
}

Value Value::bytes_of(std::string value) {
  Value out;
  out.kind = Kind::bytes;
  out.text = std::move(value);
  return out;
}

Value Value::list_of(std::vector<Value> values) {
  Value out;
  out.kind = Kind::list;
  out.items = std::move(values);
  return out;
}

Value Value::tuple_of(std::vector<Value> values) {
  Value out;
  out.kind = Kind::tuple;
  out.items = std::move(values);
  return out;
}

void encode_to(const Value& value, std::string& out) {
  switch (value.kind) {
    case Kind::none: out += 'N'; return;
    case Kind::undefined: out += 'U'; return;
    case Kind::boolean: out += value.boolean ? 'T' : 'F'; return;
    case Kind::real: append_real(value.real, out); return;
    case Kind::complex:
      out += 'c';
      append_real(value.real, out);
      append_real(value.imaginary, out);
      return;
    case Kind::integer:
    case Kind::decimal:
    case Kind::string:
    case Kind::bytes: append_sized(tag_of(value.kind), value.text, out); return;
    case Kind::named:
      append_sized('n', value.text, out);
      value.items.empty() ? void(out += 'N') : encode_to(value.items.front(), out);
      return;
    case Kind::object:
      append_sized('o', value.text, out);
      out += std::to_string(value.number) + ':';
      return;
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::frozenset:
    case Kind::dict: break;
  }
  out += tag_of(value.kind);
  out += std::to_string(value.kind == Kind::dict ? value.items.size() / 2 : value.items.size());
  out += ':';
  for (const Value& item : value.items) encode_to(item, out);
}

std::string encode(const Value& value) {
  std::string out;
  encode_to(value, out);
  return out;
}

tl::expected<Value, ValueError> decode(std::string_view wire) {
  return detail::whole_value<Decoder>(wire);
}

}  // namespace fixpoint::sandbox
