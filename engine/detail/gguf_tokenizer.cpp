#include "engine/detail/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/detail/config_limits.h"
#include "engine/detail/fail.h"
#include "engine/detail/gguf_fields.h"
#include "engine/detail/merge_text.h"
#include "engine/detail/stop_tokens.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

/// A value of tokenizer.ggml.pre, and what else is known of tokenizers that carry it.
struct PreName {
  std::string_view name;
  PreTokenizer pre;
  bool ignore_merges;
  bool nfc;
};

constexpr std::array<PreName, 9> kPreNames{{
    {"gpt-2", PreTokenizer::gpt2, false, false},
    {"llama3", PreTokenizer::llama3, true, false},
    {"llama-v3", PreTokenizer::llama3, true, false},
    {"llama-bpe", PreTokenizer::llama3, true, false},
    {"qwen2", PreTokenizer::qwen2, false, true},
    {"deepseek-r1-qwen", PreTokenizer::qwen2, false, false},
    {"deepseek-coder", PreTokenizer::deepseek_coder, false, false},
    {"deepseek-llm", PreTokenizer::deepseek_llm, false, false},
    {"phi-2", PreTokenizer::gpt2, false, false},
}};

void read_tokens(GgufFields& fields, TokenizerSpec& spec) {
  constexpr std::string_view kKey = "tokenizer.ggml.tokens";
  const auto* tokens = fields.array(kKey, GgufType::string);
  if (tokens == nullptr) {
    fields.fail(Kind::missing, kKey, "is missing");
    return;
  }
  if (tokens->count == 0 || std::cmp_greater(tokens->count, kMostTokens)) {
    fields.fail(Kind::malformed, kKey, std::to_string(tokens->count) + " tokens are no vocabulary");
    return;
  }
  for (const auto text : strings_of(*tokens)) spec.tokens.emplace_back(text);
}

void read_types(const Gguf& gguf, GgufFields& fields, TokenizerSpec& spec) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  const auto* value = gguf.find(kKey);
  if (value == nullptr) {
    spec.types.assign(spec.tokens.size(), TokenType::normal);
    return;
  }
  const auto* array = std::get_if<GgufArray>(value);
  const auto numbers = array != nullptr ? integers_of(*array) : std::vector<std::int64_t>{};
  if (numbers.size() != spec.tokens.size()) {
    fields.fail(Kind::inconsistent, kKey, "must be an array of " + std::to_string(spec.tokens.size()) +
                                              " integers, one for each token");
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 1 || numbers[i] > 6) {
      fields.fail(Kind::malformed, kKey, "token " + std::to_string(i) + " has the unknown type " + std::to_string(numbers[i]));
      return;
    }
    spec.types.push_back(static_cast<TokenType>(numbers[i]));
  }
}

void read_scores(GgufFields& fields, TokenizerSpec& spec) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  const auto* array = fields.array(kKey, GgufType::f32);
  if (array == nullptr) {
    fields.fail(Kind::missing, kKey, "is missing; a SentencePiece vocabulary needs it");
    return;
  }
  spec.scores = floats_of(*array);
  if (spec.scores.size() != spec.tokens.size()) {
    fields.fail(Kind::inconsistent, kKey, std::to_string(spec.scores.size()) + " scores for " +
                                              std::to_string(spec.tokens.size()) + " tokens");
  }
  if (std::any_of(spec.scores.begin(), spec.scores.end(), [](float s) { return std::isnan(s); })) {
    fields.fail(Kind::malformed, kKey, "holds a score that is no number");
  }
}

void read_merges(GgufFields& fields, TokenizerSpec& spec) {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  const auto* array = fields.array(kKey, GgufType::string);
  if (array == nullptr) {
    fields.fail(Kind::missing, kKey, "is missing; a byte-level BPE vocabulary needs it");
    return;
  }
  spec.merges.reserve(static_cast<std::size_t>(array->count));
  for (const auto merge : strings_of(*array)) {
    const auto pieces = split_merge(merge);
    if (!pieces) {
      fields.fail(Kind::malformed, kKey, "merge " + std::to_string(spec.merges.size()) + " is " + shown(merge) +
                                             ", not two pieces with a space between");
      return;
    }
    spec.merges.emplace_back(pieces->first, pieces->second);
  }
}

void read_pre_tokenizer(GgufFields& fields, TokenizerSpec& spec) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  auto name = fields.text(kKey);
  if (!name) {
    // Early Qwen files lack the key, and their architecture has had one pre-tokenizer.
    const auto arch = fields.text("general.architecture").value_or("");
    if (arch == "qwen2" || arch == "qwen3") name = "qwen2";
  }
  if (!name) {
    fields.fail(Kind::missing, kKey, "is missing, so how to cut text into words is unknown");
    return;
  }
  const auto* known = std::find_if(kPreNames.begin(), kPreNames.end(), [&](const auto& p) { return p.name == *name; });
  if (known == kPreNames.end()) {
    fields.fail(Kind::unsupported, kKey, "pre-tokenizer " + shown(*name) + " is not supported");
    return;
  }
  spec.pre = known->pre;
  spec.ignore_merges = known->ignore_merges;
  spec.nfc = known->nfc;
}

std::optional<TokenId> read_id(GgufFields& fields, std::string_view key, const TokenizerSpec& spec) {
  const auto id = fields.integer(key, 0, static_cast<std::int64_t>(spec.tokens.size()) - 1);
  return id ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
}

void read_special_tokens(GgufFields& fields, TokenizerSpec& spec) {
  spec.bos = read_id(fields, "tokenizer.ggml.bos_token_id", spec);
  spec.eos = read_id(fields, "tokenizer.ggml.eos_token_id", spec);
  spec.eot = read_id(fields, "tokenizer.ggml.eot_token_id", spec);
  spec.unk = read_id(fields, "tokenizer.ggml.unknown_token_id", spec);
  if (const auto eom = read_id(fields, "tokenizer.ggml.eom_token_id", spec)) spec.stop_tokens.push_back(*eom);
  if (!fields.error()) add_stop_tokens(spec);
}

}  // namespace

tl::expected<TokenizerFile, LoadError> read_gguf_tokenizer(const Gguf& gguf, const std::string& file) {
  constexpr std::string_view kModel = "tokenizer.ggml.model";
  GgufFields fields(gguf, file);
  TokenizerFile out;
  auto& spec = out.spec;
  const auto model = fields.text(kModel);
  if (!model) fields.fail(Kind::missing, kModel, "is missing");
  read_tokens(fields, spec);
  if (fields.error()) return tl::unexpected(*fields.error());
  read_types(gguf, fields, spec);
  if (*model == "gpt2") {
    spec.kind = TokenizerSpec::Kind::byte_level_bpe;
    read_pre_tokenizer(fields, spec);
    read_merges(fields, spec);
  } else if (*model == "llama") {
    spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
    read_scores(fields, spec);
  } else {
    fields.fail(Kind::unsupported, kModel,
                "tokenizer " + shown(*model) + " is not supported (gpt2 and llama are)");
  }
  const bool sentencepiece = spec.kind == TokenizerSpec::Kind::sentencepiece_bpe;
  if (!fields.error()) read_special_tokens(fields, spec);
  // Where the file does not say: SentencePiece models begin with BOS, and so does Llama-3.
  spec.add_bos = fields.boolean("tokenizer.ggml.add_bos_token").value_or(spec.bos && (sentencepiece || spec.pre == PreTokenizer::llama3));
  spec.add_space_prefix = sentencepiece && fields.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  if (spec.add_bos && !spec.bos) {
    fields.fail(Kind::inconsistent, "tokenizer.ggml.add_bos_token", "asks for a BOS token that the file does not name");
  }
  if (const auto text = fields.text("tokenizer.chat_template")) out.chat_template = std::string(*text);
  out.program_start_given = fields.boolean("fixpoint.program_start_given").value_or(false);
  if (fields.error()) return tl::unexpected(*fields.error());
  return out;
}

}  // namespace fixpoint::engine::detail
