#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/detail/cgroups.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/namespaces.h"

namespace fixpoint::sandbox::detail {

/// What this host gives, found by trying it in the broker's own process: after prepare the broker stands in a host name
/// namespace of its own.
struct Host {
  bool root = false;
  bool user_namespace = false;
  std::string user_namespace_error;
  bool cgroup_namespace = false;
  bool seccomp = true;
  bool notify = false;
  bool change_uid = false;
  unsigned first_uid = 0;
  bool capabilities_bounded = false;  ///< nothing that the broker starts can gain one, outside of a new user namespace
  int landlock_version = 0;
  std::uint64_t clone_flags = 0;  ///< namespaces that each run's init is born in
  int joined_namespaces = 0;      ///< those that it joins (NamespacePool)
  CgroupWish cgroup_wish;
  std::uint32_t without = 0;
  NamespaceIds before;  ///< the service's own

  [[nodiscard]] static Host prepare(std::uint32_t without, bool user_namespace, const std::string& error);
  /// What cannot be seen from inside a run.
  [[nodiscard]] ProbesFrame probes(const CgroupTree& cgroups, NamespacePool& namespaces) const;
};

}  // namespace fixpoint::sandbox::detail
