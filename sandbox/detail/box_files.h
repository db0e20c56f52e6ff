#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/detail/frame.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Writes input files below `box`, each new, no link followed. The first one's bytes are those of the file `first`, unless that is -1:
/// they never pass through this process's memory.
[[nodiscard]] Failure write_inputs(int box, const std::vector<FrameFile>& files, int first = -1);

/// A file that the program wrote. Links anywhere on the way, anything but a regular file with one name, and special files
/// are refused; opening never blocks.
struct Collected {
  UniqueFd file;
  std::uint64_t size = 0;
  int error = 0;  ///< errno; 0 where `file` is open
};
[[nodiscard]] Collected open_output(int box, const std::string& path);

}  // namespace fixpoint::sandbox::detail
