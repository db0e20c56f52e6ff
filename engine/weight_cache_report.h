#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "engine/load_error.h"

namespace fixpoint::engine {

/// What a model's file of packed weights was good for when the model was loaded.
struct WeightCacheReport {
  std::filesystem::path file;
  std::int64_t mapped = 0;         ///< weights that are read in place in the file
  std::int64_t mapped_bytes = 0;
  std::int64_t packed = 0;         ///< weights that were packed from the model; where there are any, the file is written anew
  std::optional<LoadError> error;  ///< why it could not be
};

}  // namespace fixpoint::engine
