#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda_emulation/context.h"
#include "tests/cuda_emulation/race_detector.h"

namespace fixpoint::cuda_emulation {

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

inline constexpr int kWarpSize = 32;

enum class WarpOperation : std::uint8_t { none, shuffle, vote, sync, tile_product };

/// One CUDA thread: a fiber and what the detector needs to know of it.
struct EmulatedThread {
  Index3 index;
  int id = 0;  ///< in the block
  int lane = 0;
  int warp = 0;
  enum class State : std::uint8_t { ready, at_block_barrier, at_warp_operation, done } state = State::ready;
  StackPointer context = nullptr;
  void* address_sanitizer_stack = nullptr;
  std::uint32_t warp_operations = 0;
  ThreadClock clock;
};

/// Runs the blocks of one grid after another on one stack per CUDA thread. Lanes of a warp take turns at warp operations,
/// warps at block barriers; each runs as far as it can, so what a kernel forgets to wait for is really not there yet.
/// One grid at a time, on the calling thread.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Throws std::runtime_error for what is undefined on a device: a race in shared memory, an index out of its array, a
  /// barrier that not every thread reaches, a warp operation that not every lane reaches.
  void run(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

  // What the emulated device functions call, on a thread of the grid.
  [[nodiscard]] static BlockRunner& current();
  [[nodiscard]] EmulatedThread& thread() { return *running_; }
  [[nodiscard]] Index3 block_index() const { return block_index_; }
  [[nodiscard]] Index3 grid() const { return grid_; }
  [[nodiscard]] Index3 block() const { return block_; }
  void block_barrier();
  /// Gives `bytes` (at most 16) to the warp and returns when all lanes have; then `given(lane)` is what each gave.
  void warp_exchange(WarpOperation operation, std::uint32_t mask, const void* value, std::size_t bytes);
  [[nodiscard]] const std::byte* given(int lane) const;
  [[nodiscard]] std::byte* shared_memory() { return shared_.data(); }
  [[nodiscard]] std::size_t shared_bytes() const { return shared_bytes_; }
  void shared_access(const void* address, std::size_t bytes, Access access);
  /// Keeps the first fault of the grid; the thread goes on with whatever value it has.
  void fault(const std::string& what);

 private:
  struct Warp {
    int lanes = 0;
    int arrived = 0;
    WarpOperation operation = WarpOperation::none;
    // Two sets of values: a lane may be one operation ahead of one that has not read yet.
    std::array<std::array<std::array<std::byte, 16>, kWarpSize>, 2> given{};
  };

  static void enter();
  void run_block(const std::function<void()>& kernel);
  void prepare(EmulatedThread& thread);
  void suspend();
  [[nodiscard]] EmulatedThread* next_ready();
  void switch_to(EmulatedThread* to, bool finished);
  [[nodiscard]] std::byte* stack_of(int id) { return stacks_ + static_cast<std::size_t>(id) * kStackBytes; }
  [[nodiscard]] std::string where() const;

  static constexpr std::size_t kStackBytes = std::size_t{128} << 10U;
  static constexpr int kMaxThreads = 1024;

  Index3 grid_, block_, block_index_;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<EmulatedThread> threads_;
  std::vector<Warp> warps_;
  EmulatedThread* running_ = nullptr;
  int at_barrier_ = 0;
  int alive_ = 0;
  StackPointer caller_ = nullptr;
  void* caller_sanitizer_stack_ = nullptr;
  const void* caller_stack_bottom_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  std::byte* stacks_ = nullptr;
  std::size_t shared_bytes_ = 0;
  std::vector<std::byte> shared_;
  RaceDetector races_;
  std::string fault_;
};

}  // namespace fixpoint::cuda_emulation
