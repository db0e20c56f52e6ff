#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "engine/tokenizer_spec.h"
#include "tests/engine/models/random_model.h"

namespace fixpoint::test_models {

/// The two file formats of write_random_model; `tokenizer` has spec.vocab - spec.vocab_padding tokens.
void write_gguf_model(const std::filesystem::path& path, const RandomModelSpec& spec, const engine::TokenizerSpec& tokenizer);
void write_safetensors_model(const std::filesystem::path& directory, const RandomModelSpec& spec,
                             const engine::TokenizerSpec& tokenizer);

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace fixpoint::test_models
