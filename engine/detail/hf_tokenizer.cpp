#include "engine/detail/hf_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/detail/fail.h"
#include "engine/detail/hf_pre_tokenizer.h"
#include "engine/detail/hf_vocabulary.h"
#include "engine/detail/json_fields.h"
#include "engine/detail/mapped_file.h"
#include "engine/detail/stop_tokens.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

constexpr std::size_t kMostTokenizerBytes = std::size_t{256} << 20;
constexpr std::size_t kMostTemplateBytes = std::size_t{1} << 20;

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto it = object.find(name);
  return it == object.end() ? kNothing : *it;
}

bool is(const Json& value, std::string_view text) { return value.is_string() && value.get_ref<const std::string&>() == text; }

/// NFC, and SentencePiece's "▁ for a space"; anything else would change the ids.
void read_normalizer(const Json& normalizer, JsonFields& fields, TokenizerSpec& spec, int depth = 0) {
  if (normalizer.is_null()) return;
  const auto& type = member(normalizer, "type");
  if (is(type, "Sequence") && depth < 4) {
    for (const auto& step : member(normalizer, "normalizers")) read_normalizer(step, fields, spec, depth + 1);
  } else if (is(type, "NFC")) {
    spec.nfc = true;
  } else if (is(type, "Prepend") && is(member(normalizer, "prepend"), kSpaceMark)) {
    spec.add_space_prefix = true;
  } else if (!(is(type, "Replace") && is(member(member(normalizer, "pattern"), "String"), " ") &&
               is(member(normalizer, "content"), kSpaceMark))) {
    fields.fail(Kind::unsupported, "normalizer", "step " + shown(type.is_string() ? type.get<std::string>() : "?") + " is not supported");
  }
}

/// Metaspace: the space prefix of SentencePiece models in newer files.
void read_metaspace(const Json& pre, JsonFields& fields, TokenizerSpec& spec) {
  if (pre.is_null()) return;
  if (!is(member(pre, "type"), "Metaspace") || !is(member(pre, "replacement"), kSpaceMark)) {
    fields.fail(Kind::unsupported, "pre_tokenizer", "is not supported beside byte fallback");
    return;
  }
  const auto& scheme = member(pre, "prepend_scheme");
  const auto& old = member(pre, "add_prefix_space");
  spec.add_space_prefix = scheme.is_string() ? !is(scheme, "never") : !old.is_boolean() || old.get<bool>();
  spec.space_prefix_once = is(scheme, "first");
}

std::optional<TokenId> find_token(const TokenizerSpec& spec, const std::string& text) {
  const auto it = std::find(spec.tokens.begin(), spec.tokens.end(), text);
  return it == spec.tokens.end() ? std::nullopt : std::optional(static_cast<TokenId>(it - spec.tokens.begin()));
}

/// The token that a template puts before the text, if there is one.
void read_post_processor(const Json& processor, TokenizerSpec& spec, int depth = 0) {
  if (is(member(processor, "type"), "Sequence") && depth < 4) {
    for (const auto& step : member(processor, "processors")) read_post_processor(step, spec, depth + 1);
  } else if (is(member(processor, "type"), "TemplateProcessing")) {
    const auto& single = member(processor, "single");
    if (!single.is_array() || single.empty()) return;
    const auto& id = member(member(single.front(), "SpecialToken"), "id");
    if (!id.is_string()) return;
    spec.bos = find_token(spec, id.get<std::string>());
    spec.add_bos = spec.bos.has_value();
  }
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// A token as tokenizer_config.json names it: its text, or an object with it.
std::optional<TokenId> named_token(const Json& value, const TokenizerSpec& spec) {
  const auto& text = value.is_object() ? member(value, "content") : value;
  return text.is_string() ? find_token(spec, text.get<std::string>()) : std::nullopt;
}

/// A template text, or a list of named ones of which "default" counts.
std::optional<std::string> template_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  for (const auto& entry : value) {
    if (is(member(entry, "name"), "default") && member(entry, "template").is_string()) {
      return member(entry, "template").get<std::string>();
    }
  }
  return std::nullopt;
}

void add_stop_ids(const std::vector<std::int64_t>& ids, TokenizerSpec& spec) {
  for (const auto id : ids) {
    // Ids in the padding of the embedding are never sampled.
    if (id < static_cast<std::int64_t>(spec.tokens.size()) &&
        std::find(spec.stop_tokens.begin(), spec.stop_tokens.end(), id) == spec.stop_tokens.end()) {
      spec.stop_tokens.push_back(static_cast<TokenId>(id));
    }
  }
}

tl::expected<std::string, LoadError> read_template_file(const std::filesystem::path& path) {
  const auto mapped = MappedFile::open(path);
  if (!mapped) return tl::unexpected(mapped.error());
  const auto bytes = mapped->bytes();
  if (bytes.size() > kMostTemplateBytes) return fail(Kind::malformed, path.string(), "size", "is too long for a chat template");
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

void read_tokenizer_config(const Json& config, TokenizerFile& out) {
  auto& spec = out.spec;
  if (const auto bos = named_token(member(config, "bos_token"), spec)) spec.bos = bos;
  spec.eos = named_token(member(config, "eos_token"), spec);
  const auto& add_bos = member(config, "add_bos_token");
  const auto& type = member(config, "tokenizer_class");
  if (add_bos.is_boolean()) {
    spec.add_bos = add_bos.get<bool>();
  } else if (type.is_string() && type.get_ref<const std::string&>().starts_with("LlamaTokenizer")) {
    spec.add_bos = true;  // what this class does unless it is told otherwise
  }
  spec.add_bos = spec.add_bos && spec.bos;
  out.chat_template = template_of(member(config, "chat_template"));
  const auto& start_given = member(config, "fixpoint_program_start_given");
  out.program_start_given = start_given.is_boolean() && start_given.get<bool>();
}

std::optional<LoadError> read_generation_config(const Json& config, const std::string& file, TokenizerSpec& spec) {
  JsonFields fields(config, file);
  add_stop_ids(fields.integers("eos_token_id", 0, INT32_MAX), spec);
  return fields.error();
}

tl::expected<TokenizerSpec, LoadError> read_tokenizer_json(const Json& tokenizer, const std::string& file) {
  JsonFields fields(tokenizer, file);
  TokenizerSpec spec;
  const auto& model = member(tokenizer, "model");
  const auto pre = recognise_pre_tokenizer(member(tokenizer, "pre_tokenizer"), file);
  if (!pre) return tl::unexpected(pre.error());
  const bool byte_fallback = member(model, "byte_fallback").is_boolean() && member(model, "byte_fallback").get<bool>();
  if (*pre) {
    spec.pre = **pre;
  } else if (byte_fallback) {
    spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
    read_metaspace(member(tokenizer, "pre_tokenizer"), fields, spec);
  } else {
    fields.fail(Kind::unsupported, "pre_tokenizer", "neither byte-level BPE nor BPE with byte fallback");
  }
  read_normalizer(member(tokenizer, "normalizer"), fields, spec);
  if (fields.error()) return tl::unexpected(*fields.error());
  if (auto error = read_hf_vocabulary(tokenizer, file, spec)) return tl::unexpected(std::move(*error));
  spec.ignore_merges = member(model, "ignore_merges").is_boolean() && member(model, "ignore_merges").get<bool>();
  read_post_processor(member(tokenizer, "post_processor"), spec);
  return spec;
}

tl::expected<TokenizerFile, LoadError> read_hf_tokenizer(const std::filesystem::path& directory, const HfConfig* config) {
  const auto path = directory / "tokenizer.json";
  if (!is_there(path)) return fail(Kind::missing, directory.string(), "tokenizer.json", "is missing from the directory");
  const auto json = read_json_object(path, kMostTokenizerBytes);
  if (!json) return tl::unexpected(json.error());
  auto spec = read_tokenizer_json(*json, path.string());
  if (!spec) return tl::unexpected(std::move(spec.error()));
  TokenizerFile out{std::move(*spec), std::nullopt};
  if (const auto beside = directory / "tokenizer_config.json"; is_there(beside)) {
    const auto settings = read_json_object(beside, kMostConfigBytes);
    if (!settings) return tl::unexpected(settings.error());
    read_tokenizer_config(*settings, out);
  }
  if (config != nullptr) {
    const auto size = static_cast<std::int64_t>(out.spec.tokens.size());
    if (!out.spec.bos && config->bos_token && *config->bos_token < size) out.spec.bos = static_cast<TokenId>(*config->bos_token);
    add_stop_ids(config->eos_tokens, out.spec);
  }
  if (const auto beside = directory / "generation_config.json"; is_there(beside)) {
    const auto settings = read_json_object(beside, kMostConfigBytes);
    if (!settings) return tl::unexpected(settings.error());
    if (auto error = read_generation_config(*settings, beside.string(), out.spec)) return tl::unexpected(std::move(*error));
  }
  if (!out.spec.eos && !out.spec.stop_tokens.empty()) out.spec.eos = out.spec.stop_tokens.front();
  add_stop_tokens(out.spec);
  if (const auto beside = directory / "chat_template.jinja"; is_there(beside)) {
    auto text = read_template_file(beside);
    if (!text) return tl::unexpected(std::move(text.error()));
    out.chat_template = std::move(*text);
  }
  return out;
}

}  // namespace fixpoint::engine::detail
