#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "engine/detail/fail.h"
#include "engine/detail/hf_config.h"
#include "engine/detail/hf_index.h"
#include "engine/detail/hf_names.h"
#include "engine/detail/hf_tokenizer.h"
#include "engine/detail/json_document.h"
#include "engine/detail/model_parts.h"
#include "engine/detail/model_tensors.h"
#include "engine/detail/safetensors.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;
namespace fs = std::filesystem;

constexpr std::size_t kMostIndexBytes = std::size_t{64} << 20;

/// The one file with weights, or those that the index names.
tl::expected<std::vector<fs::path>, LoadError> shards_of(const fs::path& directory) {
  std::error_code ignored;
  const auto index_path = directory / "model.safetensors.index.json";
  if (!fs::exists(index_path, ignored)) return std::vector{directory / "model.safetensors"};
  const auto index = read_json_object(index_path, kMostIndexBytes);
  if (!index) return tl::unexpected(index.error());
  const auto names = shard_names(*index, index_path.string());
  if (!names) return tl::unexpected(names.error());
  std::vector<fs::path> out;
  for (const auto& name : *names) out.push_back(directory / name);
  return out;
}

/// Adds one shard's tensors; a tensor that an earlier shard has too is an error.
std::optional<LoadError> add_shard(const fs::path& path, std::set<std::string>& seen, ModelParts& parts,
                                   std::vector<FoundTensor>& found) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return std::move(mapped.error());
  const auto file = path.string();
  const auto tensors = parse_safetensors(mapped->bytes(), file);
  if (!tensors) return tensors.error();
  for (const auto& t : *tensors) {
    if (!seen.insert(t.name).second) {
      return LoadError{Kind::malformed, file, "tensor " + shown(t.name), "is in another shard too"};
    }
    // A Tensor is one type for what is read and what is written; the mapping itself is read-only.
    auto* data = const_cast<std::byte*>(mapped->bytes().data() + t.offset);
    found.push_back({to_gguf_name(t.name), t.name, file, kernels::Tensor::of(data, t.dtype, t.shape)});
  }
  parts.files.push_back(std::move(*mapped));
  return std::nullopt;
}

tl::expected<HfConfig, LoadError> read_config(const fs::path& directory) {
  const auto path = directory / "config.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return fail(Kind::missing, directory.string(), "config.json", "is missing from the directory");
  const auto json = read_json_object(path, kMostConfigBytes);
  if (!json) return tl::unexpected(json.error());
  return read_hf_config(*json, path.string());
}

}  // namespace

tl::expected<ModelParts, LoadError> load_hf_model(const fs::path& directory, UnsupportedTokenizer policy) {
  auto config = read_config(directory);
  if (!config) return tl::unexpected(std::move(config.error()));
  ModelParts parts;
  if (auto error = take_tokenizer(read_hf_tokenizer(directory, &*config), policy, parts)) return tl::unexpected(std::move(*error));
  const auto shards = shards_of(directory);
  if (!shards) return tl::unexpected(shards.error());
  std::vector<FoundTensor> found;
  std::set<std::string> seen;
  for (const auto& shard : *shards) {
    if (auto error = add_shard(shard, seen, parts, found)) return tl::unexpected(std::move(*error));
  }
  const TensorSource source{.file = directory.string(),
                            .tying = config->model.tied_embeddings ? Tying::tied : Tying::untied,
                            .name_in_file = to_hf_name};
  auto bound = bind_tensors(std::move(found), source, config->model);
  if (!bound) return tl::unexpected(std::move(bound.error()));
  parts.format = shards->size() == 1 ? "safetensors" : "safetensors, " + std::to_string(shards->size()) + " shards";
  parts.converted = std::move(bound->converted);
  parts.tensors = std::move(bound->tensors);
  parts.config = std::move(config->model);
  if (parts.config.name.empty()) parts.config.name = fs::weakly_canonical(directory).filename().string();
  return parts;
}

}  // namespace fixpoint::engine::detail
