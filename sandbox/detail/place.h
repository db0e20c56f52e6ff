#pragma once

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
/// is a good part of a short run, so it outlives a run that has left nothing in it: no file, no byte, no attribute. Nobody enters it again
/// before that was looked at, and then only runs with the same root, the same limits and the same uid.
class Place {
 public:
  Place() = default;
  Place(UniqueFd mounts, UniqueFd files) : mounts_(std::move(mounts)), files_(std::move(files)) {}

  [[nodiscard]] bool valid() const { return mounts_.valid(); }
  [[nodiscard]] int mounts() const { return mounts_.get(); }
  [[nodiscard]] int files() const { return files_.get(); }
  /// Once nothing lives any more that was in it: removes the files `given` to the run in its box (names without a slash), and tells whether all is as it was then,
  /// but for the times of the directories, which are set to now. (What no one can look at or set back are the kernel's counters, which
  /// number what comes next in a file system: a run may move them.)
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
