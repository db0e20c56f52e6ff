#include "tests/engine/models/random_model.h"

#include <stdexcept>

#include "tests/engine/models/random_formats.h"
#include "tests/engine/models/test_vocabulary.h"

namespace fixpoint::test_models {

void write_random_model(const std::filesystem::path& path, const RandomModelSpec& spec) {
  if (spec.num_heads % spec.num_kv_heads != 0) throw std::invalid_argument("heads must be a multiple of kv heads");
  const auto tokens = spec.vocab - spec.vocab_padding;
  const auto tokenizer = spec.tokenizer == ModelTokenizer::byte_level_bpe ? byte_level_vocabulary(tokens)
                                                                           : sentencepiece_vocabulary(tokens);
  if (spec.format == ModelFormat::gguf) {
    write_gguf_model(path, spec, tokenizer);
  } else {
    write_safetensors_model(path, spec, tokenizer);
  }
}

}  // namespace fixpoint::test_models
