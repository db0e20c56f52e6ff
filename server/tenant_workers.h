#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "agent/loop.h"

namespace fixpoint::engine {
class LanguageModel;
}

namespace fixpoint::server {

/// The agent's workers, one set a tenant where our own engine writes: what one tenant's sessions leave in the prefix cache
/// serves no other tenant. Thread-safe.
class TenantWorkers {
 public:
  /// Our own models behind the generators in `base`; null where a generator is something else, which then serves all.
  struct Models {
    engine::LanguageModel* model = nullptr;
    engine::LanguageModel* specialist = nullptr;
    engine::LanguageModel* explainer = nullptr;
  };
  TenantWorkers(agent::Services base, Models models) : base_(base), models_(models) {}

  [[nodiscard]] agent::Services services(const std::string& tenant);

 private:
  struct Set {
    std::unique_ptr<agent::Generator> model, specialist, explainer;
  };
  agent::Services base_;
  Models models_;
  std::mutex mutex_;
  std::map<std::string, Set> sets_;  // guarded by mutex_; as many as there are tenants
};

}  // namespace fixpoint::server
