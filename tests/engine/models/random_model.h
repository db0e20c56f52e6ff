#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/model_config.h"
#include "kernels/tensor.h"

namespace fixpoint::test_models {

/// How a model is written to disk.
enum class ModelFormat : std::uint8_t { gguf, safetensors };

enum class ModelTokenizer : std::uint8_t { byte_level_bpe, sentencepiece };

/// A small model with seeded random weights. The defaults make a file of about 300 KB that loads in a millisecond.
struct RandomModelSpec {
  engine::Architecture arch = engine::Architecture::llama;
  ModelFormat format = ModelFormat::gguf;
  int shards = 1;  ///< safetensors files
  std::int64_t num_layers = 2;
  std::int64_t hidden = 64;
  std::int64_t num_heads = 4;
  std::int64_t num_kv_heads = 2;
  std::int64_t head_dim = 16;  ///< may differ from hidden / num_heads
  std::int64_t ffn = 96;
  std::int64_t vocab = 384;       ///< rows of the embedding, at least 320 + vocab_padding
  std::int64_t vocab_padding = 0; ///< rows that no token has
  std::int64_t context = 512;
  bool tied = true;
  bool qkv_bias = false;  ///< qwen2 has it always
  float rope_theta = 10000.0F;
  std::optional<std::int64_t> rotary_dim;  ///< GGUF only; the whole head when unset
  engine::RopeScaling rope_scaling;        ///< llama3 becomes rope_freqs.weight in a GGUF file

  /// Type of the matrices. A matrix whose rows are no whole number of blocks is written as `fallback`.
  kernels::DType type = kernels::DType::f32;
  std::optional<kernels::DType> embedding_type;  ///< token_embd and output; `type` when unset
  std::optional<kernels::DType> down_type;       ///< ffn_down and attn_v, as mixed files have it
  kernels::DType fallback = kernels::DType::f16;

  ModelTokenizer tokenizer = ModelTokenizer::byte_level_bpe;
  std::uint64_t seed = 1;
  bool silent_controls = false;  ///< the last three tokens' rows of the output are zero, so their logits are 0 and never the largest
  float gain = 1.0F;  ///< scale of the matrices, times 1/sqrt(fan in)
};

/// Writes the model: a file for GGUF, a directory (created) for safetensors. A tensor's values depend on the seed and its
/// name only, so the two formats of one spec hold the same model (exactly, where the
/// type is F32: safetensors files hold norms and biases in the type of the matrices). The bytes are the same on every machine.
///
/// The byte-level tokenizer has a token for each byte, some merges (" the", "return", …), fillers, and at the end of the
/// vocabulary <|endoftext|>, <|im_start|> and <|im_end|> with a ChatML template. The SentencePiece one has <unk>, <s>,
/// </s>, the bytes, and pieces. Throws std::runtime_error when the file cannot be written, std::invalid_argument for a spec
/// that no model can have.
void write_random_model(const std::filesystem::path& path, const RandomModelSpec& spec);

}  // namespace fixpoint::test_models
