#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/row_choice.h"

namespace fixpoint::kernels {

/// What kernels/row_choice.h says, with sorts and loops; below 0 where the row is not finite. `weight` is token_weight, as
/// compiled by whoever calls.
template <class Weight>
[[nodiscard]] std::int32_t plain_choice(std::span<const float> row, const RowChoice& choice, const Weight& weight) {
  row = row.first(static_cast<std::size_t>(choice.vocab_size));
  const auto logit = [&](std::int32_t id) { return row[static_cast<std::size_t>(id)]; };
  if (!std::ranges::all_of(row, [](float x) { return x < std::numeric_limits<float>::infinity(); })) return -1;
  std::vector<std::int32_t> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  const float largest = logit(ids.front());
  if (largest == -std::numeric_limits<float>::infinity()) return -1;
  if (choice.inverse_temperature == 0.0F) return ids.front();

  std::erase_if(ids, [&](std::int32_t id) { return logit(id) < largest - choice.depth; });
  if (choice.top_k > 0) ids.resize(std::min(ids.size(), static_cast<std::size_t>(choice.top_k)));
  const auto weight_of = [&](std::int32_t id) { return weight(logit(id), largest, choice.inverse_temperature); };
  std::uint64_t total = 0;
  for (const std::int32_t id : ids) total += weight_of(id);
  if (choice.top_p < 1.0F) {
    const std::uint64_t mass = kept_mass(total, choice.top_p);
    std::size_t kept = 0;
    total = 0;
    while (total < mass) total += weight_of(ids[kept++]);
    ids.resize(kept);
  }
  std::ranges::sort(ids);
  std::uint64_t left = drawn_mass(total, choice.u);
  std::size_t i = 0;
  while (left >= weight_of(ids[i])) left -= weight_of(ids[i++]);
  return ids[i];
}

}  // namespace fixpoint::kernels
