#pragma once

#include "cli/agent_workers.h"

namespace fixpoint::cli {

/// Where neither a model nor a script is named: names the small model that is part of Fixpoint (models/CARD.md) and says on
/// stderr that it works and how to name another one. False where its file is missing.
[[nodiscard]] bool name_default_model(WorkerOptions& options);

}  // namespace fixpoint::cli
