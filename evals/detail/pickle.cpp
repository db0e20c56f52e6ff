#include "evals/detail/pickle.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace fixpoint::evals::detail {
namespace {

struct Item {
  enum class Kind { text, dict, mark } kind;
  std::string text;
  std::map<std::string, std::string> members;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  tl::expected<PickledText, std::string> run() {
    while (true) {
      const auto opcode = take(1);
      if (!opcode) return tl::unexpected(std::string("is a cut pickle"));
      const char code = opcode->front();
      if (code == '.') break;
      if (const auto error = step(code)) return tl::unexpected(*error);
    }
    if (at_ != bytes_.size()) return tl::unexpected(std::string("has bytes after the pickle"));
    if (stack_.size() != 1 || stack_.front().kind == Item::Kind::mark) return tl::unexpected(std::string("is no pickle of one text"));
    return PickledText{std::move(stack_.front().text), std::move(stack_.front().members)};
  }

 private:
  std::optional<std::string_view> take(std::size_t count) {
    if (bytes_.size() - at_ < count) return std::nullopt;
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  std::optional<std::uint64_t> number(std::size_t width) {
    const auto digits = take(width);
    if (!digits) return std::nullopt;
    std::uint64_t out = 0;
    for (std::size_t i = width; i > 0; --i) out = out << 8 | static_cast<unsigned char>((*digits)[i - 1]);
    return out;
  }

  std::optional<std::string> push_text(std::size_t width) {
    const auto size = number(width);
    const auto text = size ? take(*size) : std::nullopt;
    if (!text) return "is a cut pickle";
    stack_.push_back({Item::Kind::text, std::string(*text), {}});
    return std::nullopt;
  }

  std::optional<std::string> skip(std::size_t count) {
    if (!take(count)) return "is a cut pickle";
    return std::nullopt;
  }

  /// Puts the pairs above `from` into the dict below them.
  std::optional<std::string> set_items(std::size_t dict, std::size_t from) {
    if (dict >= stack_.size() || stack_[dict].kind != Item::Kind::dict || (stack_.size() - from) % 2 != 0) return "is a malformed pickle";
    for (std::size_t i = from; i + 1 < stack_.size(); i += 2) {
      if (stack_[i].kind != Item::Kind::text || stack_[i + 1].kind != Item::Kind::text) return "holds more than text";
      stack_[dict].members[stack_[i].text] = stack_[i + 1].text;
    }
    stack_.resize(dict + 1);
    return std::nullopt;
  }

  std::optional<std::string> set_items_after_mark() {
    std::size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1].kind != Item::Kind::mark) --mark;
    if (mark < 2) return "is a malformed pickle";
    return set_items(mark - 2, mark);
  }

  std::optional<std::string> step(char code) {
    switch (static_cast<unsigned char>(code)) {
      case 0x80: return skip(1);                                                              // PROTO
      case 0x95: return skip(8);                                                              // FRAME
      case 0x94: return std::nullopt;                                                         // MEMOIZE
      case 'q': return skip(1);                                                               // BINPUT
      case 'r': return skip(4);                                                               // LONG_BINPUT
      case 0x8C: return push_text(1);                                                         // SHORT_BINUNICODE
      case 'X': return push_text(4);                                                          // BINUNICODE
      case 0x8D: return push_text(8);                                                         // BINUNICODE8
      case '}': return stack_.push_back({Item::Kind::dict, {}, {}}), std::nullopt;            // EMPTY_DICT
      case '(': return stack_.push_back({Item::Kind::mark, {}, {}}), std::nullopt;            // MARK
      case 'u': return set_items_after_mark();                                                // SETITEMS
      case 's':                                                                               // SETITEM
        if (stack_.size() < 3) return "is a malformed pickle";
        return set_items(stack_.size() - 3, stack_.size() - 2);
      default: return "holds the pickle opcode " + std::to_string(static_cast<unsigned char>(code)) + ", which plain text does not need";
    }
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::vector<Item> stack_;
};

}  // namespace

tl::expected<PickledText, std::string> read_pickled_text(std::string_view bytes) { return Reader(bytes).run(); }

}  // namespace fixpoint::evals::detail
