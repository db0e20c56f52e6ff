#pragma once

#include <string>
#include <vector>

#include "engine/engine_stats.h"
#include "server/metrics.h"

namespace fixpoint::server {

/// The engine's statistics under the names that vLLM's users know.
[[nodiscard]] std::vector<Metrics::Sample> engine_samples(const engine::EngineStats& stats, const std::string& model);

}  // namespace fixpoint::server
