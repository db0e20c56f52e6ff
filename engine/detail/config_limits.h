#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/load_error.h"
#include "engine/model_config.h"

namespace fixpoint::engine::detail {

/// No hyperparameter of a real model comes near these; products of two of them cannot overflow.
inline constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostLayers = 4096;
inline constexpr std::int64_t kMostContext = std::int64_t{1} << 30;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
/// Of a tensor: as many bytes of any type can be counted.
inline constexpr std::uint64_t kMostElements = std::uint64_t{1} << 60;

/// What must hold between hyperparameters, whatever kind of file they come from.
[[nodiscard]] std::optional<LoadError> check_config(const ModelConfig& config, const std::string& file);

}  // namespace fixpoint::engine::detail
