#include "engine/model_file.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "engine/detail/content_hash.h"
#include "engine/detail/fail.h"
#include "engine/detail/gguf.h"
#include "engine/detail/gguf_tokenizer.h"
#include "engine/detail/hf_tokenizer.h"
#include "engine/detail/mapped_file.h"
#include "engine/detail/model_parts.h"
#include "engine/tokenizer_file.h"

namespace fixpoint::engine {

struct ModelFile::Impl {
  std::filesystem::path path;
  detail::ModelParts parts;
  std::unordered_map<std::string_view, const kernels::Tensor*> by_name;
};

tl::expected<ModelFile, LoadError> ModelFile::open(const std::filesystem::path& path, UnsupportedTokenizer policy) {
  std::error_code ignored;
  auto parts = std::filesystem::is_directory(path, ignored) ? detail::load_hf_model(path, policy) : detail::load_gguf_model(path, policy);
  if (!parts) return tl::unexpected(std::move(parts.error()));
  const auto rows = parts->config.vocab_size;
  const auto tokens = static_cast<std::int64_t>(parts->tokenizer.tokens.size());
  if (tokens > rows) {
    return detail::fail(LoadError::Kind::inconsistent, path.string(), "vocabulary",
                        std::to_string(tokens) + " tokens, but the embedding has only " + std::to_string(rows) + " rows");
  }
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->parts = std::move(*parts);
  for (const auto& t : impl->parts.tensors) impl->by_name.emplace(t.name, &t.tensor);
  return ModelFile(std::move(impl));
}

ModelFile::ModelFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

const ModelConfig& ModelFile::config() const { return impl_->parts.config; }
const TokenizerSpec& ModelFile::tokenizer() const { return impl_->parts.tokenizer; }
const std::optional<LoadError>& ModelFile::tokenizer_error() const { return impl_->parts.tokenizer_error; }
const std::optional<std::string>& ModelFile::chat_template() const { return impl_->parts.chat_template; }
bool ModelFile::program_start_given() const { return impl_->parts.program_start_given; }
const std::vector<NamedTensor>& ModelFile::tensors() const { return impl_->parts.tensors; }
std::string ModelFile::format() const { return impl_->parts.format; }

const std::filesystem::path& ModelFile::path() const { return impl_->path; }

const kernels::Tensor* ModelFile::find(std::string_view name) const {
  const auto it = impl_->by_name.find(name);
  return it == impl_->by_name.end() ? nullptr : it->second;
}

std::int64_t ModelFile::file_bytes() const {
  std::int64_t total = 0;
  for (const auto& file : impl_->parts.files) total += static_cast<std::int64_t>(file.bytes().size());
  return total;
}

std::uint64_t ModelFile::fingerprint() const {
  detail::ContentHash hash;
  for (const auto& file : impl_->parts.files) {
    hash.add_number(file.bytes().size());
    hash.add_number(static_cast<std::uint64_t>(file.modified().count()));
  }
  for (const auto& [name, tensor] : tensors()) {
    hash.add_text(name);
    hash.add_number(static_cast<std::uint64_t>(tensor.dtype));
    for (int i = 0; i < 4; ++i) hash.add_number(static_cast<std::uint64_t>(tensor.shape[i]));
    const std::span<const std::byte> bytes{tensor.data, static_cast<std::size_t>(tensor.bytes())};
    const std::size_t sample = std::min<std::size_t>(bytes.size(), 1024);
    for (const std::size_t start : {std::size_t{0}, (bytes.size() - sample) / 2, bytes.size() - sample}) {
      hash.add_bytes(bytes.subspan(start, sample));
    }
  }
  return hash.value();
}

void ModelFile::let_go(const kernels::Tensor& tensor) const {
  for (const auto& file : impl_->parts.files) file.let_go({tensor.data, static_cast<std::size_t>(tensor.bytes())});
}

std::optional<LoadError> detail::take_tokenizer(tl::expected<TokenizerFile, LoadError> tokenizer, UnsupportedTokenizer policy,
                                                ModelParts& parts) {
  if (tokenizer) {
    parts.tokenizer = std::move(tokenizer->spec);
    parts.chat_template = std::move(tokenizer->chat_template);
    parts.program_start_given = tokenizer->program_start_given;
    return std::nullopt;
  }
  if (policy == UnsupportedTokenizer::refuse || tokenizer.error().kind != LoadError::Kind::unsupported) return std::move(tokenizer.error());
  parts.tokenizer_error = std::move(tokenizer.error());
  return std::nullopt;
}

tl::expected<TokenizerFile, LoadError> read_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return detail::read_hf_tokenizer(path, nullptr);
  if (path.filename() == "tokenizer.json") return detail::read_hf_tokenizer(path.parent_path(), nullptr);
  const auto mapped = detail::MappedFile::open(path);
  if (!mapped) return tl::unexpected(mapped.error());
  const auto gguf = detail::parse_gguf(mapped->bytes(), path.string());
  if (!gguf) return tl::unexpected(gguf.error());
  return detail::read_gguf_tokenizer(*gguf, path.string());
}

}  // namespace fixpoint::engine
