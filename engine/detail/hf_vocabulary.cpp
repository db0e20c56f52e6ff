#include "engine/detail/hf_vocabulary.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/detail/config_limits.h"
#include "engine/detail/fail.h"
#include "engine/detail/json_fields.h"
#include "engine/detail/merge_text.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

constexpr std::int64_t kMostHoles = std::int64_t{1} << 16;

bool is_byte_spelling(std::string_view text) { return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>'); }

class VocabularyReader {
 public:
  VocabularyReader(const Json& tokenizer, const std::string& file, TokenizerSpec& spec)
      : top_(tokenizer, file), model_(model_of(tokenizer), file, "model."), file_(file), spec_(spec) {}

  std::optional<LoadError> read() {
    check_model();
    if (!error()) read_tokens();
    if (!error()) read_added_tokens();
    if (!error()) read_unknown();
    if (!error()) read_merges();
    if (!error() && spec_.kind == TokenizerSpec::Kind::sentencepiece_bpe) score_by_merges();
    return error();
  }

 private:
  static const Json& model_of(const Json& tokenizer) {
    static const Json kNothing;
    const auto it = tokenizer.find("model");
    return it == tokenizer.end() ? kNothing : *it;
  }

  std::optional<LoadError> error() const { return model_.error() ? model_.error() : top_.error(); }

  void check_model() {
    if (const auto type = model_.text("type").value_or("BPE"); type != "BPE") {
      model_.fail(Kind::unsupported, "type", "tokenizer model " + shown(type) + " is not supported (BPE is)");
    }
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model_.text(name).value_or("").empty()) model_.fail(Kind::unsupported, name, "is not supported");
    }
  }

  /// Makes room for token `id`; false where the id is absurd.
  bool reserve_id(std::int64_t id, std::int64_t known) {
    if (id < 0 || id >= kMostTokens || id > known + kMostHoles) return false;
    const auto size = static_cast<std::size_t>(id) + 1;
    if (spec_.tokens.size() < size) {
      spec_.tokens.resize(size);
      spec_.types.resize(size, TokenType::unused);
    }
    return true;
  }

  void read_tokens() {
    const auto* vocab = model_.find("vocab");
    if (vocab == nullptr || !vocab->is_object() || vocab->empty()) {
      model_.fail(Kind::missing, "vocab", "is missing, empty or no object");
      return;
    }
    const auto known = static_cast<std::int64_t>(vocab->size());
    for (const auto& [text, id] : vocab->items()) {
      // An unsigned number past int64 would come out negative, and is refused as such.
      if (!id.is_number_integer() || !reserve_id(id.get<std::int64_t>(), known)) {
        model_.fail(Kind::malformed, "vocab", "token " + shown(text) + " has no usable id");
        return;
      }
      const auto at = id.get<std::size_t>();
      if (spec_.types[at] != TokenType::unused) {
        model_.fail(Kind::malformed, "vocab", "id " + std::to_string(at) + " belongs to two tokens");
        return;
      }
      const bool byte = spec_.kind == TokenizerSpec::Kind::sentencepiece_bpe && is_byte_spelling(text);
      spec_.tokens[at] = text;
      spec_.types[at] = byte ? TokenType::byte : TokenType::normal;
    }
  }

  void read_added_tokens() {
    const auto* added = top_.find("added_tokens");
    if (added == nullptr) return;
    if (!added->is_array()) {
      top_.fail(Kind::malformed, "added_tokens", "is no list");
      return;
    }
    const auto known = static_cast<std::int64_t>(spec_.tokens.size() + added->size());
    for (std::size_t i = 0; i < added->size() && !top_.error(); ++i) read_added_token((*added)[i], i, known);
  }

  void read_added_token(const Json& token, std::size_t index, std::int64_t known) {
    JsonFields fields(token, file_, "added_tokens[" + std::to_string(index) + "].");
    const auto id = fields.required_integer("id", 0, kMostTokens - 1);
    const auto content = fields.text("content");
    if (!content || content->empty()) fields.fail(Kind::missing, "content", "is missing or empty");
    for (const char* name : {"lstrip", "rstrip", "single_word"}) {
      if (fields.boolean(name).value_or(false)) {
        fields.fail(Kind::unsupported, name, "tokens that depend on what stands beside them are not supported");
      }
    }
    const bool special = fields.boolean("special").value_or(false);
    if (!fields.error() && !reserve_id(id, known)) fields.fail(Kind::malformed, "id", "is far beyond the vocabulary");
    if (!fields.error()) {
      auto& text = spec_.tokens[static_cast<std::size_t>(id)];
      if (!text.empty() && text != *content) {
        fields.fail(Kind::inconsistent, "content", shown(*content) + " has the id of " + shown(text));
      }
      text = *content;
      spec_.types[static_cast<std::size_t>(id)] = special ? TokenType::control : TokenType::user_defined;
    }
    top_.adopt(fields);
  }

  void read_unknown() {
    const auto unknown = model_.text("unk_token");
    if (!unknown) return;
    const auto it = std::find(spec_.tokens.begin(), spec_.tokens.end(), *unknown);
    if (it == spec_.tokens.end()) {
      model_.fail(Kind::inconsistent, "unk_token", shown(*unknown) + " is not in the vocabulary");
      return;
    }
    spec_.unk = static_cast<TokenId>(it - spec_.tokens.begin());
    if (spec_.kind == TokenizerSpec::Kind::sentencepiece_bpe) spec_.types[static_cast<std::size_t>(*spec_.unk)] = TokenType::unknown;
  }

  /// A merge is "a b" or ["a", "b"].
  static std::optional<std::pair<std::string, std::string>> merge_of(const Json& merge) {
    if (merge.is_string()) {
      const auto pieces = split_merge(merge.get_ref<const std::string&>());
      if (!pieces) return std::nullopt;
      return std::pair{std::string(pieces->first), std::string(pieces->second)};
    }
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) return std::nullopt;
    auto pair = std::pair{merge[0].get<std::string>(), merge[1].get<std::string>()};
    if (pair.first.empty() || pair.second.empty()) return std::nullopt;
    return pair;
  }

  void read_merges() {
    const auto* merges = model_.find("merges");
    if (merges == nullptr || !merges->is_array()) {
      model_.fail(Kind::missing, "merges", "is missing or no list");
      return;
    }
    spec_.merges.reserve(merges->size());
    for (const auto& merge : *merges) {
      auto pair = merge_of(merge);
      if (!pair) {
        model_.fail(Kind::malformed, "merges", "merge " + std::to_string(spec_.merges.size()) + " is not two pieces");
        return;
      }
      spec_.merges.push_back(std::move(*pair));
    }
  }

  /// These files list a SentencePiece model's merges best piece first, so a piece's place in the list stands for its score:
  /// "highest score first" then merges in the same order. Pieces that no merge makes come last.
  void score_by_merges() {
    std::unordered_map<std::string, float> first;
    for (std::size_t i = 0; i < spec_.merges.size(); ++i) {
      first.emplace(spec_.merges[i].first + spec_.merges[i].second, -static_cast<float>(i));
    }
    const float last = -static_cast<float>(spec_.merges.size());
    for (std::size_t i = 0; i < spec_.tokens.size(); ++i) {
      const auto it = first.find(spec_.tokens[i]);
      const bool piece = spec_.types[i] == TokenType::normal;
      spec_.scores.push_back(!piece ? 0.0F : it == first.end() ? last : it->second);
    }
    spec_.merges.clear();
  }

  JsonFields top_, model_;
  const std::string& file_;
  TokenizerSpec& spec_;
};

}  // namespace

std::optional<LoadError> read_hf_vocabulary(const Json& tokenizer, const std::string& file, TokenizerSpec& spec) {
  return VocabularyReader(tokenizer, file, spec).read();
}

}  // namespace fixpoint::engine::detail
