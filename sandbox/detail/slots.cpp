#include "sandbox/detail/slots.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::ptrdiff_t kIdlePlaces = 8;

}  // namespace

Slot SlotPool::take(std::optional<std::uint32_t> template_id) {
  const auto last = [this](const auto& suits) { return std::find_if(free_.rbegin(), free_.rend(), suits); };
  auto found = free_.rend();
  if (template_id) found = last([&](const Slot& slot) { return slot.place.valid() && slot.template_id == *template_id; });
  if (found == free_.rend()) found = last([](const Slot& slot) { return !slot.place.valid(); });
  if (found == free_.rend()) return {next_++, {}, 0};
  Slot slot = std::move(*found);
  free_.erase(std::next(found).base());
  return slot;
}

void SlotPool::give_back(Slot slot) {
  const auto with_place = std::find_if(free_.begin(), free_.end(), [](const Slot& one) { return one.place.valid(); });
  if (slot.place.valid()) {
    // The oldest goes: a template that is not used any more must not keep its places from the others.
    if (free_.end() - with_place >= kIdlePlaces) with_place->place = {};
    free_.push_back(std::move(slot));
  } else {
    free_.insert(with_place, std::move(slot));
  }
}

}  // namespace fixpoint::sandbox::detail
