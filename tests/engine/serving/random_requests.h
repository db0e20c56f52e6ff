#pragma once

#include <random>
#include <string>
#include <vector>

#include "engine/request.h"

namespace fixpoint::engine::testing {

/// Requests that share parts of each other, greedy and seeded, with penalties, filters and stops.
[[nodiscard]] std::vector<Request> random_requests(std::mt19937& random, int n);

/// Tokens, text, log-probabilities and ends; fails fatally with `where`.
void expect_same(const Completion& a, const Completion& b, const std::string& where);

}  // namespace fixpoint::engine::testing
