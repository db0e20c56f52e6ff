#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Empty network namespaces, each used by one live run at a time. They go back because no run can change one: it has no
/// capability, and every socket in it died with the run.
class NetworkPool {
 public:
  /// -1 with errno where none can be made.
  [[nodiscard]] UniqueFd take();
  void give_back(UniqueFd network);
  /// Makes one ahead of its use, up to `wanted`; true when it did.
  bool refill(std::size_t wanted);

 private:
  static UniqueFd make();
  std::vector<UniqueFd> idle_;
};

/// A namespace of host names that all runs share; none of them can change it.
[[nodiscard]] bool enter_host_name_namespace();

struct Clone {
  std::uint64_t namespaces = 0;  ///< CLONE_NEW…
  int cgroup = -1;               ///< v2 directory to be born in
};

/// fork with namespaces: 0 in the child, the pid and a pidfd in the parent, -1 with errno.
[[nodiscard]] pid_t clone_process(const Clone& options, UniqueFd& pidfd);

/// The identities of a process's namespaces, as /proc/self/ns shows them ("ipc:[4026531839]"); empty where unreadable.
struct NamespaceIds {
  std::string ipc, uts, net, cgroup;
};
[[nodiscard]] NamespaceIds own_namespaces();

/// The same, seen by a child that was made like a run's init.
[[nodiscard]] NamespaceIds namespaces_of_child(const Clone& options, int network, bool cgroup_namespace);

}  // namespace fixpoint::sandbox::detail
