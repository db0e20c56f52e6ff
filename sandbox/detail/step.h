#pragma once

#include <cstdint>
#include <string_view>

#include "sandbox/policy.h"

namespace fixpoint::sandbox::detail {

/// Everything that must succeed before a program starts. A failed step is the verdict "setup_error: <name>".
enum class Step : std::uint32_t {
  none,
  // In the broker.
  parse_request,
  prepare_template,
  prepare_namespaces,
  prepare_cgroup,
  set_cgroup_limits,
  clone_init,
  send_to_init,
  // In the run's init (pid 1).
  parent_death_signal,
  join_cgroup,
  cgroup_namespace,
  join_namespaces,
  mount_namespace,
  mount_tmpfs,
  mount_proc,
  receive_request,
  resize_tmpfs,
  write_files,
  clone_target,
  fork_zygote,
  enter_namespaces,
  // In the run's init, for its program; a zygote's program does them itself.
  standard_streams,
  close_descriptors,
  // In the program's process.
  new_session,
  change_directory,
  resource_limits,
  landlock,
  drop_groups,
  drop_uid,
  drop_capabilities,
  no_new_privileges,
  seccomp,
  execute,
  count
};

inline constexpr std::string_view kStepNames[] = {
    "none",          "parse_request",    "prepare_template",   "prepare_namespaces", "prepare_cgroup",
    "set_cgroup_limits", "clone_init",   "send_to_init",       "parent_death_signal", "join_cgroup",
    "cgroup_namespace", "join_namespaces", "mount_namespace", "mount_tmpfs",      "mount_proc",
    "receive_request", "resize_tmpfs",   "write_files",        "clone_target",      "fork_zygote",
    "enter_namespaces", "standard_streams", "close_descriptors", "new_session",
    "change_directory", "resource_limits", "landlock",
    "drop_groups",   "drop_uid",         "drop_capabilities",  "no_new_privileges", "seccomp",
    "execute"};
static_assert(sizeof(kStepNames) / sizeof(kStepNames[0]) == static_cast<std::size_t>(Step::count));

[[nodiscard]] inline std::string_view name(Step step) {
  return step < Step::count ? kStepNames[static_cast<std::size_t>(step)] : std::string_view("unknown_step");
}

/// For tests of faults: one step that does not go well. Set in the broker before any run; children inherit it.
struct InjectedFault {
  Step step = Step::none;
  Fault fault = Fault::fails;
};
inline InjectedFault injected_fault;

/// Called at the beginning of each step: true when it has to fail (errno is set).
[[nodiscard]] bool fault_at(Step step);

/// A step that failed and the errno it failed with.
struct Failure {
  Step step = Step::none;
  int error = 0;

  [[nodiscard]] explicit operator bool() const { return step != Step::none; }
};

}  // namespace fixpoint::sandbox::detail
