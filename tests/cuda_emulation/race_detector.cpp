#include "tests/cuda_emulation/race_detector.h"

namespace fixpoint::cuda_emulation {

void RaceDetector::reset(std::size_t bytes) { words_.assign((bytes + 3) / 4, Word{}); }

void RaceDetector::Seen::add(const ThreadClock& clock) {
  // Older accesses of the same warp come before everything that comes after this one, for whoever may conflict with them.
  const bool newer = warp == clock.warp && clock.warp_barriers > warp_barriers;
  if (thread == kNobody || block_barriers != clock.block_barriers || newer) {
    *this = {clock.block_barriers, clock.warp_barriers, clock.id, clock.warp};
    return;
  }
  if (thread != clock.id) thread = kMany;
  if (warp != clock.warp) warp = kMany;
}

bool RaceDetector::Seen::before(const ThreadClock& clock) const {
  if (thread == kNobody || thread == clock.id || block_barriers != clock.block_barriers) return true;
  return warp == clock.warp && warp_barriers < clock.warp_barriers;
}

const char* RaceDetector::access(std::size_t offset, Access access, const ThreadClock& clock) {
  Word& word = words_[offset / 4];
  const char* wrong = nullptr;
  if (!word.write.before(clock)) wrong = access == Access::read ? "read of a word another thread writes" : "two threads write one word";
  if (access != Access::read && !word.read.before(clock)) wrong = "write of a word another thread reads";
  if (access != Access::atomic && !word.atomic.before(clock)) wrong = "plain access to a word that is updated atomically";
  if (access != Access::write && !word.written) wrong = "read of a word that nobody has written";
  if (access == Access::read) {
    word.read.add(clock);
  } else {
    (access == Access::write ? word.write : word.atomic).add(clock);
    word.written = true;
  }
  return wrong;
}

}  // namespace fixpoint::cuda_emulation
