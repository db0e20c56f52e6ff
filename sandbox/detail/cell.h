#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sandbox/detail/cgroup_counters.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/privileges.h"
#include "sandbox/detail/place.h"

namespace fixpoint::sandbox::detail {

/// What the broker prepared for one run's init. Nothing in it is owned: the init is a copy of the broker's process.
struct CellPlan {
  int socket = -1;           ///< the launch frame comes from here; end of file means that the broker is gone
  int template_mounts = -1;
  int place[Place::kHandles] = {-1, -1};  ///< mounts and files of the place to stand in; -1: a new one
  int network_namespace = -1, ipc_namespace = -1;  ///< -1: the one that it is born in
  bool cgroup_namespace = false;
  bool mount_proc = false;
  std::span<const int> join;  ///< cgroup.procs files
  WritableLimits writable;
  Identity program;           ///< who the program becomes
  Identity init;              ///< who the init becomes once the program runs
  bool nested_user_namespace = false;
  int landlock_version = 0;
  bool notify = false;
  const std::vector<std::vector<std::uint64_t>>* filters = nullptr;  ///< by policy id
  std::optional<std::uint32_t> policy;     ///< of the program whose process is to stand before its job is there
  const CounterFiles* counters = nullptr;  ///< of the run's leaf
  std::uint64_t counted = 0;               ///< which of them count (Report::Valid)
};

/// What a run's init says to the broker: a byte, with descriptors.
enum class Word : char {
  place = 'p',     ///< its place, with both handles: it may outlive the run. Comes before `answered`
  listener = 'l',  ///< seccomp's, to be kept until the init is gone
  answered = 'a',  ///< the monitor has all that it waits for
};

/// What the run's processes used, all together.
[[nodiscard]] Report accounted(const CounterFiles& counters, std::uint64_t counted);

/// Pid 1 of a run: builds what surrounds the program, starts it, reaps what it leaves, reports, and takes everything with it
/// when it exits. Never returns; never touches a file of the program by name except through openat2 beneath the box.
[[noreturn]] void run_cell(const CellPlan& plan);

}  // namespace fixpoint::sandbox::detail
