#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Empty namespaces for a run to join; not valid where it does not get a new one, or is born in it.
struct JoinedNamespaces {
  UniqueFd network;
  UniqueFd ipc;
};

/// Each is used by one live run at a time, and those that have waited longest come first. They go back because no run can change one: it
/// has no capability, its sockets die with it (those that are on their way through each other, when the kernel next looks for such), and the
/// seccomp filter denies every call that makes a System V object or a message queue. (So `kinds` must not have CLONE_NEWIPC where there is
/// no filter.)
class NamespacePool {
 public:
  NamespacePool() = default;
  /// `kinds`: CLONE_NEWNET, CLONE_NEWIPC, both or 0.
  explicit NamespacePool(int kinds) : kinds_(kinds) {}

  [[nodiscard]] int kinds() const { return kinds_; }
  /// Empty with errno where none can be made.
  [[nodiscard]] std::optional<JoinedNamespaces> take();
  /// Of what is not whole nothing is kept.
  void give_back(JoinedNamespaces namespaces);
  /// Makes some ahead of their use, up to `wanted`; true when it did.
  bool refill(std::size_t wanted);

 private:
  [[nodiscard]] std::optional<JoinedNamespaces> make() const;
  [[nodiscard]] bool whole(const JoinedNamespaces& namespaces) const;
  int kinds_ = 0;
  std::vector<JoinedNamespaces> idle_;
};

/// The caller enters those that are valid. False with errno where it can't.
[[nodiscard]] bool join(int network, int ipc);

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
[[nodiscard]] NamespaceIds namespaces_of_child(const Clone& options, const JoinedNamespaces& joined, bool cgroup_namespace);

}  // namespace fixpoint::sandbox::detail
