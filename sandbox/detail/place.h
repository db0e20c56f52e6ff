#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "sandbox/detail/privileges.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Where a run's only writable file system is mounted; /box, /tmp and /dev/shm lead into it.
inline constexpr const char* kWritable = "/sandbox";
inline constexpr const char* kBox = "/sandbox/box";

struct WritableLimits {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  bool operator==(const WritableLimits&) const = default;
};

/// What a run stands in: a private copy of a template's mounts, with a writable file system of its own. To make one and to take it down
/// is a good part of a short run, so it outlives a run that has left nothing in it: no file, no byte, no attribute. The run's init has it,
/// and where the run has left much, takes it down by its own end. Otherwise the broker gets it and looks closer (renew), before another run
/// with the same root, the same limits and the same uid stands in it.
class Place {
 public:
  Place() = default;
  Place(UniqueFd mounts, UniqueFd files) : mounts_(std::move(mounts)), files_(std::move(files)) {}
  static constexpr std::size_t kHandles = 2;

  [[nodiscard]] bool valid() const { return mounts_.valid(); }
  [[nodiscard]] int mounts() const { return mounts_.get(); }
  [[nodiscard]] int files() const { return files_.get(); }
  /// What can be said by somebody who has no right in it: that there is not more in it than `given` files of a few kilobytes.
  [[nodiscard]] bool nearly_empty(std::size_t given) const;
  /// Once nothing lives any more that was in it: removes the files `given` to the run in its box (names without a slash), and tells whether
  /// all is as it was then, but for the times of the directories, which are set to now. (What no one can look at or set back are the
  /// kernel's counters, which number what comes next in a file system: a run may move them.)
  [[nodiscard]] bool renew(const Identity& owner, std::span<const std::string> given) const;

 private:
  UniqueFd mounts_;  ///< the mount namespace
  UniqueFd files_;   ///< the root directory of the writable file system
};

/// Moves the calling process into a new one, whose directories box, tmp and shm belong to `owner`. On success `place` has its handles.
[[nodiscard]] Failure enter_new_place(int template_mounts, const WritableLimits& limits, const Identity& owner, Place& place);
/// Moves the calling process into one that is there.
[[nodiscard]] Failure enter_place(int mounts);
/// Changes the limits of the place that the calling process stands in.
[[nodiscard]] Failure resize_writable(const WritableLimits& limits);

}  // namespace fixpoint::sandbox::detail
