// The small JSON files beside a model's weights. The first byte says which one: 'i' model.safetensors.index.json,
// 't' tokenizer_config.json, 'g' generation_config.json; the rest is the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "engine/detail/hf_index.h"
#include "engine/detail/hf_tokenizer.h"
#include "engine/detail/json_document.h"

namespace {

using namespace fixpoint::engine;

/// Every id that a file sets is one of the vocabulary.
void check_ids(const TokenizerSpec& spec) {
  const auto known = [&](TokenId id) { return id >= 0 && static_cast<std::size_t>(id) < spec.tokens.size(); };
  for (const auto& id : {spec.bos, spec.eos}) {
    if (id && !known(*id)) std::abort();
  }
  for (const TokenId id : spec.stop_tokens) {
    if (!known(id)) std::abort();
  }
  if (spec.add_bos && !spec.bos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto json = detail::parse_json(std::as_bytes(std::span(data + 1, size - 1)), "f");
  if (!json) return 0;
  TokenizerFile file;
  file.spec.tokens = {"<s>", "</s>", "a", "<|im_end|>"};
  if (data[0] == 'i') {
    const auto names = detail::shard_names(*json, "f");
    if (!names) return 0;
    for (const std::string& name : *names) {
      if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos) std::abort();
    }
  } else if (data[0] == 't') {
    detail::read_tokenizer_config(*json, file);
  } else {
    static_cast<void>(detail::read_generation_config(*json, "f", file.spec));
  }
  check_ids(file.spec);
  return 0;
}
