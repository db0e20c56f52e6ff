#pragma once

#include <string>
#include <vector>

#include "tests/engine/models/random_model.h"

namespace fixpoint::oracle {

struct GoldenModel {
  std::string name;
  test_models::RandomModelSpec spec;
};

/// Every weight type, architecture and rotation, a model each.
[[nodiscard]] std::vector<GoldenModel> golden_models();

}  // namespace fixpoint::oracle
