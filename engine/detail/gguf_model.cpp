#include <utility>

#include "engine/detail/fail.h"
#include "engine/detail/gguf.h"
#include "engine/detail/gguf_config.h"
#include "engine/detail/gguf_tokenizer.h"
#include "engine/detail/model_parts.h"
#include "engine/detail/model_tensors.h"

namespace fixpoint::engine::detail {
namespace {

std::vector<FoundTensor> tensors_of(const Gguf& gguf, std::span<const std::byte> bytes, const std::string& file) {
  std::vector<FoundTensor> out;
  out.reserve(gguf.tensors.size());
  for (const auto& t : gguf.tensors) {
    // A Tensor is one type for what is read and what is written; the mapping itself is read-only.
    auto* data = const_cast<std::byte*>(bytes.data() + t.offset);
    out.push_back({std::string(t.name), std::string(t.name), file, kernels::Tensor::of(data, t.dtype, t.shape)});
  }
  return out;
}

}  // namespace

tl::expected<ModelParts, LoadError> load_gguf_model(const std::filesystem::path& path, UnsupportedTokenizer policy) {
  const auto name = path.string();
  auto mapped = MappedFile::open(path);
  if (!mapped) return tl::unexpected(std::move(mapped.error()));
  const auto gguf = parse_gguf(mapped->bytes(), name);
  if (!gguf) return tl::unexpected(gguf.error());
  auto config = read_gguf_config(*gguf, name);
  if (!config) return tl::unexpected(std::move(config.error()));
  ModelParts parts;
  if (auto error = take_tokenizer(read_gguf_tokenizer(*gguf, name), policy, parts)) return tl::unexpected(std::move(*error));
  auto bound = bind_tensors(tensors_of(*gguf, mapped->bytes(), name), {.file = name}, *config);
  if (!bound) return tl::unexpected(std::move(bound.error()));
  parts.format = "GGUF v" + std::to_string(gguf->version);
  parts.files.push_back(std::move(*mapped));
  parts.converted = std::move(bound->converted);
  parts.tensors = std::move(bound->tensors);
  parts.config = std::move(*config);
  return parts;
}

}  // namespace fixpoint::engine::detail
