#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/detail/frame.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// A mount namespace whose root holds `roots` (read-only, no setuid, no devices), a few devices, an /etc with one user, and
/// mount points for a run; `files` stand in its directory .fixpoint. Host directories are bound before any untrusted program exists, each from a handle that was
/// opened without following a link at its end. Returns the namespace.
struct RootTemplate {
  UniqueFd mount_namespace;
  Failure failure;
};
[[nodiscard]] RootTemplate build_root(const std::vector<std::string>& roots, const std::vector<FrameFile>& files,
                                      bool user_namespace);

/// A /proc that shows only the calling process's pid namespace. Made while the host's /proc is in sight, because an ordinary
/// user may make one only where there is a complete one already; attached once the process stands in its new root.
struct OwnProc {
  UniqueFd mount;
  Failure failure;
};
[[nodiscard]] OwnProc make_own_proc();
[[nodiscard]] Failure attach_own_proc(const OwnProc& proc);

}  // namespace fixpoint::sandbox::detail
