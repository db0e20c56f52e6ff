#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/quant.h"
#include "tests/engine/models/random_formats.h"
#include "tests/engine/models/random_weights.h"
#include "tests/engine/models/test_vocabulary.h"

namespace fixpoint::test_models {
namespace {

using engine::Architecture;
using engine::RopeScaling;
using engine::TokenizerSpec;
using engine::TokenType;
using json = nlohmann::json;

void write_json(const std::filesystem::path& path, const json& value) {
  const auto text = value.dump(1);
  write_file(path, std::as_bytes(std::span(text)));
}

json config_of(const RandomModelSpec& s, const TokenizerSpec& t) {
  const bool llama = s.arch == Architecture::llama;
  const std::string name = llama ? "Llama" : s.arch == Architecture::qwen2 ? "Qwen2" : "Qwen3";
  json c{{"architectures", {name + "ForCausalLM"}},
         {"model_type", to_string(s.arch)},
         {"hidden_size", s.hidden},
         {"num_hidden_layers", s.num_layers},
         {"num_attention_heads", s.num_heads},
         {"num_key_value_heads", s.num_kv_heads},
         {"head_dim", s.head_dim},
         {"intermediate_size", s.ffn},
         {"vocab_size", s.vocab},
         {"max_position_embeddings", s.context},
         {"rms_norm_eps", 1e-5},
         {"rope_theta", s.rope_theta},
         {"tie_word_embeddings", s.tied},
         {"hidden_act", "silu"},
         {"bos_token_id", *t.bos},
         {"eos_token_id", *t.eos}};
  if (llama) c["attention_bias"] = s.qkv_bias;
  const auto& r = s.rope_scaling;
  switch (r.kind) {
    case RopeScaling::Kind::none: break;
    case RopeScaling::Kind::linear: c["rope_scaling"] = {{"type", "linear"}, {"factor", r.factor}}; break;
    case RopeScaling::Kind::llama3:
      c["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", r.factor},
                           {"low_freq_factor", r.low_freq_factor},
                           {"high_freq_factor", r.high_freq_factor},
                           {"original_max_position_embeddings", r.original_context}};
      break;
    case RopeScaling::Kind::yarn:
      c["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", r.factor}, {"original_max_position_embeddings", r.original_context}};
      break;
  }
  return c;
}

json tokenizer_json(const TokenizerSpec& t) {
  json vocab = json::object();
  json added = json::array();
  for (std::size_t i = 0; i < t.tokens.size(); ++i) {
    if (t.types[i] == TokenType::control) {
      added.push_back({{"id", i}, {"content", t.tokens[i]}, {"special", true}, {"normalized", false},
                       {"single_word", false}, {"lstrip", false}, {"rstrip", false}});
    } else {
      vocab[t.tokens[i]] = i;
    }
  }
  json merges = json::array();
  for (const auto& [a, b] : t.merges) merges.push_back(a + " " + b);
  const char* regex =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}}}}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"byte_fallback", false}, {"ignore_merges", false}, {"vocab", vocab}, {"merges", merges}}}};
}

/// The bytes of one safetensors file.
std::vector<std::byte> shard_of(std::span<const RandomTensor> tensors) {
  json header = json::object();
  std::vector<std::byte> data;
  for (const auto& t : tensors) {
    const auto type = t.type;
    if (kernels::traits(type).block_elements != 1) throw std::invalid_argument("safetensors files hold F32, F16 and BF16");
    const auto begin = data.size();
    data.resize(begin + t.values.size() * static_cast<std::size_t>(kernels::traits(type).block_bytes));
    kernels::quantize_row(type, t.values.data(), data.data() + begin, static_cast<std::int64_t>(t.values.size()));
    const auto shape = t.rows == 0 ? json{t.cols} : json{t.rows, t.cols};
    header[t.hf_name] = {{"dtype", kernels::traits(type).name}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  header["__metadata__"] = {{"format", "pt"}};
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::byte> out(sizeof length + text.size() + data.size());
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + sizeof length, text.data(), text.size());
  std::copy(data.begin(), data.end(), out.end() - static_cast<std::ptrdiff_t>(data.size()));
  return out;
}

void write_weights(const std::filesystem::path& directory, const RandomModelSpec& s) {
  auto tensors = random_tensors(s);
  // Published files hold norms and biases in the type of the matrices.
  for (auto& t : tensors) {
    if (t.rows == 0) t.type = s.type;
  }
  const auto shards = static_cast<std::size_t>(std::max(s.shards, 1));
  if (shards == 1) return write_file(directory / "model.safetensors", shard_of(tensors));
  json map = json::object();
  const auto per_shard = (tensors.size() + shards - 1) / shards;
  for (std::size_t i = 0; i < shards; ++i) {
    const auto first = std::min(i * per_shard, tensors.size());
    const auto part = std::span(tensors).subspan(first, std::min(per_shard, tensors.size() - first));
    const auto name = "model-0000" + std::to_string(i + 1) + "-of-0000" + std::to_string(shards) + ".safetensors";
    for (const auto& t : part) map[t.hf_name] = name;
    write_file(directory / name, shard_of(part));
  }
  write_json(directory / "model.safetensors.index.json", {{"metadata", json::object()}, {"weight_map", map}});
}

}  // namespace

void write_safetensors_model(const std::filesystem::path& directory, const RandomModelSpec& s, const TokenizerSpec& tokenizer) {
  if (tokenizer.kind != TokenizerSpec::Kind::byte_level_bpe) {
    throw std::invalid_argument("the safetensors writer has byte-level vocabularies only");
  }
  std::filesystem::create_directories(directory);
  write_json(directory / "config.json", config_of(s, tokenizer));
  write_json(directory / "tokenizer.json", tokenizer_json(tokenizer));
  write_json(directory / "tokenizer_config.json",
             {{"chat_template", kChatMlTemplate}, {"add_bos_token", false}, {"eos_token", "<|im_end|>"}});
  write_json(directory / "generation_config.json", {{"eos_token_id", tokenizer.stop_tokens}});
  write_weights(directory, s);
}

}  // namespace fixpoint::test_models
