#pragma once

#include <sys/types.h>

#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

/// Who the process becomes. `change` is false in a user namespace that maps one id only.
struct Identity {
  bool change = false;
  uid_t id = 0;
  bool bounded = false;  ///< its bounding set is known to be empty already
};

/// Irrevocably: no supplementary groups, another uid and gid, no capability in any set, locked securebits, no_new_privs,
/// not dumpable. Uses plain system calls only, so that a child that shares its parent's memory may call it.
[[nodiscard]] Failure drop_privileges(const Identity& identity);

/// Empties the bounding set of this process and of all that come of it outside of a new user namespace: a call for each capability
/// that no run has to make then. The caller's capabilities stay, also over execve. False where it isn't empty then.
[[nodiscard]] bool bound_capabilities();
[[nodiscard]] bool capabilities_bounded();

/// The next execve keeps the caller's capabilities although it is not root (a zygote in a user namespace).
[[nodiscard]] bool keep_capabilities();

/// In a new process: becomes root of a user namespace that maps the caller's ids only. The map hides `id` behind 1000.
[[nodiscard]] Failure enter_user_namespace();

}  // namespace fixpoint::sandbox::detail
