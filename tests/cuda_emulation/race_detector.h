#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fixpoint::cuda_emulation {

enum class Access : std::uint8_t { read, write, atomic };

/// How far a thread has come: barriers of its block and, since the last of those or before, of its warp.
struct ThreadClock {
  int id = 0;
  int warp = 0;
  std::uint32_t block_barriers = 0;
  std::uint32_t warp_barriers = 0;
};

/// Finds accesses to one word of shared memory by two threads, at least one of them a write, with no barrier between
/// them: whichever order the emulation happened to run them in. Also reads of words that nobody has written.
class RaceDetector {
 public:
  void reset(std::size_t bytes);
  /// Null when all is well, else what is wrong.
  [[nodiscard]] const char* access(std::size_t offset, Access access, const ThreadClock& clock);

 private:
  static constexpr int kNobody = -1;
  static constexpr int kMany = -2;

  /// Accesses of one kind since the last block barrier, as far as needed.
  struct Seen {
    std::uint32_t block_barriers = 0;
    std::uint32_t warp_barriers = 0;
    int thread = kNobody;
    int warp = kNobody;

    void add(const ThreadClock& clock);
    /// Whether all of it happened before what the thread does now.
    [[nodiscard]] bool before(const ThreadClock& clock) const;
  };
  struct Word {
    Seen write, read, atomic;
    bool written = false;
  };

  std::vector<Word> words_;
};

}  // namespace fixpoint::cuda_emulation
