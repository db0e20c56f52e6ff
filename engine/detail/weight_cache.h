#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/detail/mapped_file.h"
#include "engine/detail/packed_file.h"
#include "engine/model_file.h"
#include "engine/weight_cache_report.h"
#include "kernels/backend.h"

namespace fixpoint::engine::detail {

/// Packed weights of one model for one backend's form, kept in a file between runs. Weights come out of the file where it was
/// written for this key; a weight that it does not have as it should is packed from the model, and the file is written anew. A
/// file that can't be read or written costs time, nothing else. Outlives its weights, which lie in the mapped file.
class WeightCache {
 public:
  WeightCache(const std::filesystem::path& file, PackedKey key);

  /// `name` differs for each weight of the model.
  [[nodiscard]] std::unique_ptr<kernels::Weight> load(kernels::Backend& backend, std::string_view name,
                                                      std::span<const kernels::Tensor> parts);
  /// After the last weight.
  void finish();
  [[nodiscard]] const WeightCacheReport& report() const { return report_; }

 private:
  void begin_file();

  PackedKey key_;
  WeightCacheReport report_;
  MappedFile mapped_;
  PackedDirectory found_;
  std::vector<PackedEntry> taken_;  ///< of `found_`, which a new file would need, too
  std::optional<PackedFileWriter> writer_;
};

/// Where a model's packed weights are kept in `folder`: "model.gguf.FORM.v1.weights". In a folder other than the model's own,
/// where models of one name can meet, the name also tells the model's path.
[[nodiscard]] std::filesystem::path packed_file_in(const std::filesystem::path& folder, const ModelFile& model, const std::string& form);

}  // namespace fixpoint::engine::detail
