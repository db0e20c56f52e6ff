// Runs inside the jail, in one program with the candidate, and answers the judge's calls of one function. Parameters are read
// into the function's own types and its result is written back; both may be made of integers, floating point, bool, char,
// strings, vectors, arrays, pairs, tuples, (unordered) maps and sets, and optionals. Included after the candidate's text, so it
// takes nothing from it but that function, and names everything in full. Like all drivers it is not trusted.
#pragma once

#include <cxxabi.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fixpoint_driver {

constexpr ::std::size_t max_frame = 64u << 20;

struct Mismatch : ::std::runtime_error {
  using ::std::runtime_error::runtime_error;
};

// ------------------------------------------------------------------------------------------------------------- wire form

class In {
 public:
  explicit In(::std::string data) : data_(::std::move(data)) {}
  char peek() const { return at_ < data_.size() ? data_[at_] : '\0'; }
  char tag() { return at_ < data_.size() ? data_[at_++] : '\0'; }
  ::std::size_t length() {
    ::std::size_t n = 0;
    while (at_ < data_.size() && data_[at_] != ':') n = n * 10 + static_cast<::std::size_t>(data_[at_++] - '0');
    ++at_;
    return n;
  }
  ::std::string sized() {
    const ::std::size_t n = length();
    if (at_ > data_.size() || n > data_.size() - at_) throw Mismatch("a short question");
    ::std::string out = data_.substr(at_, n);
    at_ += n;
    return out;
  }
  ::std::string text() {
    tag();
    return sized();
  }
  void skip() {
    const char t = tag();
    if (t == 'l' || t == 't' || t == 'S' || t == 'z' || t == 'd') {
      for (::std::size_t n = length() * (t == 'd' ? 2 : 1); n > 0; --n) skip();
    } else if (t == 'n') {
      sized();
      skip();
    } else if (t != 'N' && t != 'U' && t != 'T' && t != 'F') {
      sized();
    }
  }

 private:
  ::std::string data_;
  ::std::size_t at_ = 0;
};

struct Out {
  ::std::string bytes;
  void sized(char tag, const ::std::string& text) {
    bytes += tag;
    bytes += ::std::to_string(text.size());
    bytes += ':';
    bytes += text;
  }
  void count(char tag, ::std::size_t n) {
    bytes += tag;
    bytes += ::std::to_string(n);
    bytes += ':';
  }
};

template <class T, class = void>
struct Codec;  // a type that is not made of plain parts

template <class T>
struct Codec<T, ::std::enable_if_t<::std::is_integral_v<T> && !::std::is_same_v<T, bool> && !::std::is_same_v<T, char>>> {
  static T read(In& in) {
    const char tag = in.tag();
    if (tag == 'T' || tag == 'F') return tag == 'T';
    if (tag != 'i' && tag != 'f') throw Mismatch("an integer was expected");
    const ::std::string text = in.sized();
    char* end = nullptr;
    errno = 0;
    if (tag == 'f') {
      const double real = ::std::strtod(text.c_str(), &end);
      if (real != ::std::floor(real) || ::std::fabs(real) > 9e15) throw Mismatch("an integer was expected");
      return static_cast<T>(real);
    }
    if (::std::is_unsigned_v<T>) {
      const unsigned long long value = ::std::strtoull(text.c_str(), &end, 10);
      if (errno != 0 || text[0] == '-' || value > ::std::numeric_limits<T>::max()) throw Mismatch("out of the parameter's range");
      return static_cast<T>(value);
    }
    const long long value = ::std::strtoll(text.c_str(), &end, 10);
    if (errno != 0 || value < static_cast<long long>(::std::numeric_limits<T>::min()) ||
        value > static_cast<long long>(::std::numeric_limits<T>::max())) {
      throw Mismatch("out of the parameter's range");
    }
    return static_cast<T>(value);
  }
  static void write(Out& out, const T& value) { out.sized('i', ::std::to_string(value)); }
};

template <class T>
struct Codec<T, ::std::enable_if_t<::std::is_floating_point_v<T>>> {
  static T read(In& in) {
    const char tag = in.tag();
    if (tag != 'i' && tag != 'f') throw Mismatch("a number was expected");
    return static_cast<T>(::std::strtold(in.sized().c_str(), nullptr));
  }
  static void write(Out& out, const T& value) {
    char text[64];
    ::std::snprintf(text, sizeof text, "%a", static_cast<double>(value));
    out.sized('f', ::std::isnan(value) ? "nan" : text);
  }
};

template <>
struct Codec<bool> {
  static bool read(In& in) {
    const char tag = in.tag();
    if (tag != 'T' && tag != 'F') throw Mismatch("a bool was expected");
    return tag == 'T';
  }
  static void write(Out& out, bool value) { out.bytes += value ? 'T' : 'F'; }
};

template <>
struct Codec<char> {
  static char read(In& in) {
    if (in.tag() != 's') throw Mismatch("a character was expected");
    const ::std::string text = in.sized();
    if (text.size() != 1) throw Mismatch("one character was expected");
    return text[0];
  }
  static void write(Out& out, char value) { out.sized('s', ::std::string(1, value)); }
};

template <>
struct Codec<::std::string> {
  static ::std::string read(In& in) {
    const char tag = in.tag();
    if (tag != 's' && tag != 'b') throw Mismatch("a string was expected");
    return in.sized();
  }
  static void write(Out& out, const ::std::string& value) { out.sized('s', value); }
};

template <>
struct Codec<const char*> {
  static void write(Out& out, const char* value) { value ? out.sized('s', value) : void(out.bytes += 'N'); }
};

inline ::std::size_t open_sequence(In& in) {
  const char tag = in.tag();
  if (tag != 'l' && tag != 't' && tag != 'S' && tag != 'z') throw Mismatch("a sequence was expected");
  return in.length();
}

template <class C>
struct Sequence {
  using Item = ::std::decay_t<typename C::value_type>;
  static C read(In& in) {
    C out;
    for (::std::size_t n = open_sequence(in); n > 0; --n) out.insert(out.end(), Codec<Item>::read(in));
    return out;
  }
  static void write_as(char tag, Out& out, const C& value) {
    out.count(tag, value.size());
    for (const auto& item : value) Codec<Item>::write(out, item);
  }
};
template <class T, class A>
struct Codec<::std::vector<T, A>> : Sequence<::std::vector<T, A>> {
  static void write(Out& out, const ::std::vector<T, A>& v) { Sequence<::std::vector<T, A>>::write_as('l', out, v); }
};
template <class T>
struct Codec<::std::deque<T>> : Sequence<::std::deque<T>> {
  static void write(Out& out, const ::std::deque<T>& v) { Sequence<::std::deque<T>>::write_as('l', out, v); }
};
template <class T>
struct Codec<::std::list<T>> : Sequence<::std::list<T>> {
  static void write(Out& out, const ::std::list<T>& v) { Sequence<::std::list<T>>::write_as('l', out, v); }
};
template <class T>
struct Codec<::std::set<T>> : Sequence<::std::set<T>> {
  static void write(Out& out, const ::std::set<T>& v) { Sequence<::std::set<T>>::write_as('S', out, v); }
};
template <class T>
struct Codec<::std::unordered_set<T>> : Sequence<::std::unordered_set<T>> {
  static void write(Out& out, const ::std::unordered_set<T>& v) { Sequence<::std::unordered_set<T>>::write_as('S', out, v); }
};

template <class T, ::std::size_t N>
struct Codec<::std::array<T, N>> {
  static ::std::array<T, N> read(In& in) {
    ::std::array<T, N> out{};
    if (open_sequence(in) != N) throw Mismatch("a sequence of another length was expected");
    for (T& item : out) item = Codec<T>::read(in);
    return out;
  }
  static void write(Out& out, const ::std::array<T, N>& value) {
    out.count('l', N);
    for (const T& item : value) Codec<T>::write(out, item);
  }
};

template <class... T>
struct Codec<::std::tuple<T...>> {
  static ::std::tuple<T...> read(In& in) {
    if (open_sequence(in) != sizeof...(T)) throw Mismatch("a sequence of another length was expected");
    return ::std::tuple<T...>{Codec<T>::read(in)...};
  }
  static void write(Out& out, const ::std::tuple<T...>& value) {
    out.count('t', sizeof...(T));
    ::std::apply([&](const T&... item) { (Codec<T>::write(out, item), ...); }, value);
  }
};

template <class A, class B>
struct Codec<::std::pair<A, B>> {
  static ::std::pair<A, B> read(In& in) {
    if (open_sequence(in) != 2) throw Mismatch("a pair was expected");
    A first = Codec<A>::read(in);
    return {::std::move(first), Codec<B>::read(in)};
  }
  static void write(Out& out, const ::std::pair<A, B>& value) {
    out.count('t', 2);
    Codec<A>::write(out, value.first);
    Codec<B>::write(out, value.second);
  }
};

template <class M>
struct Mapping {
  static M read(In& in) {
    if (in.tag() != 'd') throw Mismatch("a map was expected");
    M out;
    for (::std::size_t n = in.length(); n > 0; --n) {
      auto key = Codec<typename M::key_type>::read(in);
      out[::std::move(key)] = Codec<typename M::mapped_type>::read(in);
    }
    return out;
  }
  static void write(Out& out, const M& value) {
    out.count('d', value.size());
    for (const auto& [key, item] : value) {
      Codec<typename M::key_type>::write(out, key);
      Codec<typename M::mapped_type>::write(out, item);
    }
  }
};
template <class K, class V>
struct Codec<::std::map<K, V>> : Mapping<::std::map<K, V>> {};
template <class K, class V>
struct Codec<::std::unordered_map<K, V>> : Mapping<::std::unordered_map<K, V>> {};

template <class T>
struct Codec<::std::optional<T>> {
  static ::std::optional<T> read(In& in) {
    if (in.peek() == 'N') {
      in.tag();
      return ::std::nullopt;
    }
    return Codec<T>::read(in);
  }
  static void write(Out& out, const ::std::optional<T>& value) { value ? Codec<T>::write(out, *value) : void(out.bytes += 'N'); }
};

// --------------------------------------------------------------------------------------------------------------- service

inline bool read_all(char* to, ::std::size_t n) {
  while (n > 0) {
    const ::ssize_t got = ::read(3, to, n);
    if (got <= 0) return false;
    to += got;
    n -= static_cast<::std::size_t>(got);
  }
  return true;
}

inline void send(const ::std::string& body) {
  ::std::string frame(4, '\0');
  for (int i = 0; i < 4; ++i) frame[static_cast<::std::size_t>(i)] = static_cast<char>(body.size() >> (8 * i));
  frame += body;
  for (::std::size_t at = 0; at < frame.size();) {
    const ::ssize_t put = ::write(4, frame.data() + at, frame.size() - at);
    if (put <= 0) ::_exit(3);
    at += static_cast<::std::size_t>(put);
  }
}

inline void reply(bool value, const ::std::string& nonce, const ::std::string& content) {
  Out out;
  out.count('t', 4);
  out.sized('s', value ? "value" : "raise");
  out.sized('b', nonce);
  out.bytes += content;
  out.bytes += 'N';
  send(out.bytes);
}

inline ::std::string record(const ::std::string& name, const ::std::string& message) {
  Out out;
  out.count('t', 4);
  out.sized('s', name.substr(0, 100));
  out.count('l', 1);
  out.sized('s', "std::exception");
  out.sized('s', message.substr(0, 2000));
  out.count('l', 0);
  return out.bytes;
}

template <class R, class... A, ::std::size_t... I>
::std::string invoke(R (*function)(A...), ::std::tuple<::std::decay_t<A>...>& arguments, ::std::index_sequence<I...>) {
  Out out;
  if constexpr (::std::is_void_v<R>) {
    function(static_cast<A>(::std::get<I>(arguments))...);
    out.bytes += 'N';
  } else {
    Codec<::std::decay_t<R>>::write(out, function(static_cast<A>(::std::get<I>(arguments))...));
  }
  return ::std::move(out.bytes);
}

template <class R, class... A>
::std::string call(R (*function)(A...), In& in) {
  if (in.tag() != 't' || in.length() != sizeof...(A)) throw Mismatch("another number of arguments was expected");
  // Braces keep the order of reading.
  ::std::tuple<::std::decay_t<A>...> arguments{Codec<::std::decay_t<A>>::read(in)...};
  return invoke(function, arguments, ::std::index_sequence_for<A...>{});
}

template <class F>
void answer(const char* entry_point, F function, In& in, const ::std::string& kind, const ::std::string& nonce) {
  try {
    if (kind == "load") return reply(true, nonce, "N");
    const ::std::string name = in.text();
    if (kind != "call" || name != entry_point) throw Mismatch("no function " + name);
    reply(true, nonce, call(function, in));
  } catch (const ::std::exception& error) {
    int status = 0;
    char* const name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
    const ::std::string shown = name ? name : "std::exception";
    ::std::free(name);
    reply(false, nonce, record(shown, error.what()));
  } catch (...) {
    reply(false, nonce, record("exception", "an object that is no std::exception was thrown"));
  }
}

template <class F>
int serve(const char* entry_point, F function) {
  while (true) {
    unsigned char size[4];
    if (!read_all(reinterpret_cast<char*>(size), 4)) return 3;
    const ::std::size_t n = size[0] | size[1] << 8 | size[2] << 16 | static_cast<::std::size_t>(size[3]) << 24;
    if (n > max_frame) return 3;
    ::std::string body(n, '\0');
    if (!read_all(&body[0], n)) return 3;
    In in(::std::move(body));
    in.tag();
    in.length();
    const ::std::string kind = in.text();
    const ::std::string nonce = in.text();
    if (kind == "end") {
      Out out;
      out.count('t', 2);
      out.sized('s', "bye");
      out.sized('b', nonce);
      ::std::fflush(nullptr);
      send(out.bytes);
      ::_exit(0);
    }
    answer(entry_point, function, in, kind, nonce);
  }
}

}  // namespace fixpoint_driver
