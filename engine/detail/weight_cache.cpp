#include "engine/detail/weight_cache.h"

#include <array>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "engine/detail/content_hash.h"

namespace fixpoint::engine::detail {

namespace fs = std::filesystem;

WeightCache::WeightCache(const fs::path& file, PackedKey key) : key_(std::move(key)) {
  report_.file = file;
  auto mapped = MappedFile::open(file);
  if (!mapped) return;
  auto directory = parse_packed_file(mapped->bytes(), file.string());
  if (!directory || directory->key != key_) return;
  mapped_ = std::move(*mapped);  // keeps the address
  mapped_.prefer_large_pages();
  found_ = std::move(*directory);
}

std::unique_ptr<kernels::Weight> WeightCache::load(kernels::Backend& backend, std::string_view name,
                                                   std::span<const kernels::Tensor> parts) {
  const auto bytes = found_.find(name);
  auto weight = bytes.empty() ? nullptr : backend.load_packed(parts, bytes);
  if (weight != nullptr) {
    ++report_.mapped;
    report_.mapped_bytes += static_cast<std::int64_t>(bytes.size());
    if (!writer_) taken_.push_back({std::string(name), bytes});
  } else {
    weight = backend.load_weight(parts);
    ++report_.packed;
    if (!writer_) begin_file();
  }
  if (writer_) writer_->add(name, weight->packed());
  return weight;
}

void WeightCache::begin_file() {
  writer_.emplace(report_.file);
  for (const PackedEntry& entry : taken_) writer_->add(entry.name, entry.bytes);
}

void WeightCache::finish() {
  if (writer_) report_.error = writer_->commit(key_);
  writer_.reset();
}

fs::path packed_file_in(const fs::path& folder, const ModelFile& model, const std::string& form) {
  std::error_code ignored;
  fs::path path = fs::absolute(model.path(), ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  const bool own = fs::equivalent(folder, path, ignored) || fs::equivalent(folder, path.parent_path(), ignored);
  if (!own) {
    ContentHash hash;
    hash.add_text(path.string());
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "-%016llx", static_cast<unsigned long long>(hash.value()));
    name += text.data();
  }
  return folder / (name + "." + form + ".v" + std::to_string(kPackedFileVersion) + ".weights");
}

}  // namespace fixpoint::engine::detail
