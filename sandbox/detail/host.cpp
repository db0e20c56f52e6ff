#include "sandbox/detail/host.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sandbox/detail/landlock.h"
#include "sandbox/detail/namespaces.h"
#include "sandbox/detail/privileges.h"
#include "sandbox/policy.h"

namespace fixpoint::sandbox::detail {

namespace {

constexpr unsigned kUsualFirstUid = 2'000'000'000;
constexpr unsigned kUidsPerBroker = 512;

bool asked(std::uint32_t without, Protection protection) {
  return (without & (1U << static_cast<unsigned>(protection))) == 0;
}

bool action_available(std::uint32_t action) {
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/// A range of ids that this (possibly contained) root may change to; 0 where there is none.
unsigned first_usable_uid() {
  FILE* map = std::fopen("/proc/self/uid_map", "re");
  if (map == nullptr) return 0;
  unsigned inside = 0, outside = 0, count = 0, best = 0;
  const unsigned share = static_cast<unsigned>(::getpid()) % 4096 * kUidsPerBroker;
  while (std::fscanf(map, "%u %u %u", &inside, &outside, &count) == 3) {
    if (inside <= kUsualFirstUid && kUsualFirstUid - inside < count - 4096 * kUidsPerBroker) best = kUsualFirstUid + share;
    else if (best == 0 && count > 2 * kUidsPerBroker) best = inside + count - kUidsPerBroker;
  }
  std::fclose(map);
  return best;
}

}  // namespace

Host Host::prepare(std::uint32_t without, bool user_namespace, const std::string& error) {
  Host host;
  host.without = without;
  host.before = own_namespaces();
  host.root = ::geteuid() == 0;
  host.user_namespace = user_namespace;
  host.user_namespace_error = error;
  if (host.root && asked(without, Protection::separate_uid)) {
    host.first_uid = first_usable_uid();
    host.change_uid = host.first_uid != 0;
  }
  if (asked(without, Protection::uts_namespace)) (void)enter_host_name_namespace();
  if (asked(without, Protection::network_namespace)) host.joined_namespaces |= CLONE_NEWNET;
  host.cgroup_namespace = asked(without, Protection::cgroup_namespace);
  host.landlock_version = asked(without, Protection::landlock) ? detail::landlock_version() : 0;
  host.seccomp = asked(without, Protection::seccomp);
  host.notify = host.seccomp && asked(without, Protection::seccomp_names) && action_available(SECCOMP_RET_USER_NOTIF);
  host.capabilities_bounded = bound_capabilities();
  host.clone_flags = CLONE_NEWPID;
  if (asked(without, Protection::ipc_namespace)) {
    if (host.seccomp) host.joined_namespaces |= CLONE_NEWIPC;
    else host.clone_flags |= CLONE_NEWIPC;
  }
  host.cgroup_wish = {asked(without, Protection::cgroup_memory), asked(without, Protection::cgroup_pids),
                      asked(without, Protection::cgroup_cpu), asked(without, Protection::cgroup_kill)};
  return host;
}

ProbesFrame Host::probes(const CgroupTree& cgroups, NamespacePool& namespaces) const {
  ProbesFrame frame;
  const auto add = [&frame](Protection protection, bool active, std::string proof) {
    frame.items.push_back({static_cast<std::uint32_t>(protection), active, std::move(proof)});
  };
  const auto add_controller = [&](Protection protection, const CgroupController& controller, const char* what) {
    add(protection, controller.usable(),
        controller.usable() ? std::string(what) + " in " + controller.directory + (controller.unified ? " (v2)" : " (v1)")
                            : controller.refused);
  };
  if (!root) {
    add(Protection::user_namespace, user_namespace,
        user_namespace ? "the broker entered one that maps a single id" : user_namespace_error);
  }
  add_controller(Protection::cgroup_memory, cgroups.memory(), "a limit was set and read back");
  add_controller(Protection::cgroup_pids, cgroups.processes(), "a limit was set and read back");
  add_controller(Protection::cgroup_cpu, cgroups.cpu(), "a leaf counts CPU time");
  add_controller(Protection::cgroup_kill, cgroups.kill(), "a child was born in a leaf and died with it");
  JoinedNamespaces joined = namespaces.take().value_or(JoinedNamespaces{});
  const NamespaceIds inside = namespaces_of_child({clone_flags, -1}, joined, cgroup_namespace);
  const auto add_namespace = [&](Protection protection, const std::string& ours, const std::string& theirs) {
    add(protection, !theirs.empty() && ours != theirs, "a run is in " + theirs + ", the service in " + ours);
  };
  add_namespace(Protection::ipc_namespace, before.ipc, inside.ipc);
  add_namespace(Protection::uts_namespace, before.uts, inside.uts);
  add_namespace(Protection::network_namespace, before.net, inside.net);
  add_namespace(Protection::cgroup_namespace, before.cgroup, inside.cgroup);
  namespaces.give_back(std::move(joined));
  if (root) {
    add(Protection::separate_uid, change_uid, "runs get ids from " + std::to_string(first_uid) + " on");
  }
  add(Protection::seccomp_names, notify, notify ? "the kernel hands denied calls to the run's init" : "denied calls kill");
  return frame;
}

}  // namespace fixpoint::sandbox::detail
