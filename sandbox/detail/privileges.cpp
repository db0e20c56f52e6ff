#include "sandbox/detail/privileges.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fixpoint::sandbox::detail {

namespace {

constexpr unsigned kInnerId = 1000;

constexpr unsigned long kCapabilities = 64;  // more than any kernel has

bool empty_bounding_set() {
  for (unsigned long capability = 0; capability < kCapabilities; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return errno == EINVAL;  // past the kernel's last one
  }
  return true;
}

bool drop_capabilities(bool bounded) {
  if (!bounded && !empty_bounding_set()) return false;
  constexpr unsigned long kLocked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                    SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kLocked, 0, 0, 0) != 0) return false;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return false;
  return true;
}

bool clear_capability_sets() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

bool write_file(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool good = ::write(fd, text, static_cast<std::size_t>(size)) == size;
  ::close(fd);
  return good;
}

}  // namespace

Failure drop_privileges(const Identity& identity) {
  // The bounding set and securebits need CAP_SETPCAP, which the change of uid takes away.
  if (fault_at(Step::drop_capabilities) || !drop_capabilities(identity.bounded)) return {Step::drop_capabilities, errno};
  if (identity.change) {
    if (fault_at(Step::drop_groups) || ::syscall(SYS_setgroups, 0, nullptr) != 0) return {Step::drop_groups, errno};
    if (::syscall(SYS_setresgid, identity.id, identity.id, identity.id) != 0) return {Step::drop_groups, errno};
    if (fault_at(Step::drop_uid) || ::syscall(SYS_setresuid, identity.id, identity.id, identity.id) != 0) return {Step::drop_uid, errno};
  }
  if (!clear_capability_sets()) return {Step::drop_capabilities, errno};
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return {Step::drop_capabilities, errno};
  if (fault_at(Step::no_new_privileges) || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {Step::no_new_privileges, errno};
  return {};
}

bool bound_capabilities() {
  return keep_capabilities() && empty_bounding_set() && capabilities_bounded();
}

bool capabilities_bounded() {
  for (unsigned long capability = 0; capability < kCapabilities; ++capability) {
    const int bounded = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (bounded != 0) return bounded < 0 && capability > 0;  // past the kernel's last one
  }
  return true;
}

bool keep_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  for (__user_cap_data_struct& set : sets) set.inheritable = set.permitted;
  if (::syscall(SYS_capset, &header, sets) != 0) return false;
  for (unsigned long capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);  // fails for those it does not have
  }
  return true;
}

Failure enter_user_namespace() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) return {Step::drop_uid, errno};
  char map[64];
  if (!write_file("/proc/self/setgroups", "deny") && errno != ENOENT) return {Step::drop_groups, errno};
  std::snprintf(map, sizeof map, "%u %u 1", kInnerId, gid);
  if (!write_file("/proc/self/gid_map", map)) return {Step::drop_groups, errno};
  std::snprintf(map, sizeof map, "%u %u 1", kInnerId, uid);
  if (!write_file("/proc/self/uid_map", map)) return {Step::drop_uid, errno};
  return {};
}

}  // namespace fixpoint::sandbox::detail
