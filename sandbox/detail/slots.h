#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sandbox/detail/place.h"

namespace fixpoint::sandbox::detail {

/// What one live run at a time has for itself: two uids, and the place where the last one that had them stood, if that is to be had again.
struct Slot {
  unsigned number = 0;
  Place place;
  std::uint32_t template_id = 0;  ///< of the place
};

/// The slots that no run has. Numbers begin with 0 and are used again, so that there are as many as there were runs at once.
class SlotPool {
 public:
  /// One with a place made from this template where there is one; or else, or without a template, one without a place.
  [[nodiscard]] Slot take(std::optional<std::uint32_t> template_id);
  void give_back(Slot slot);

 private:
  std::vector<Slot> free_;  ///< those with a place last
  unsigned next_ = 0;
};

}  // namespace fixpoint::sandbox::detail
