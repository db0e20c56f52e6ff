#include "sandbox/detail/place.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <string>

namespace fixpoint::sandbox::detail {

namespace {

constexpr const char* kDirectories[] = {"box", "tmp", "shm"};
constexpr mode_t kDirectoryMode = 0700, kRootMode = 0755;
constexpr std::uint64_t kOwnInodes = 4;  // the directories, and the one that they are in

std::string tmpfs_options(const WritableLimits& limits) {
  char text[96];
  // Zero would mean "no limit".
  std::snprintf(text, sizeof text, "mode=0755,size=%llu,nr_inodes=%llu",
                static_cast<unsigned long long>(limits.bytes < 4096 ? 4096 : limits.bytes),
                static_cast<unsigned long long>(limits.inodes + kOwnInodes));
  return text;
}

/// No directories but `children`, no attribute, no flag, and the owner's as before.
bool pristine(int directory, mode_t mode, unsigned children, uid_t uid, gid_t gid) {
  struct statx state {};
  if (::statx(directory, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &state) != 0) return false;
  constexpr std::uint64_t kFlags = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP;
  if (state.stx_mode != (S_IFDIR | mode) || state.stx_uid != uid || state.stx_gid != gid || state.stx_nlink != 2 + children ||
      (state.stx_attributes & kFlags) != 0) {
    return false;
  }
  // Some flags are not among statx's.
  int flags = 0;
  if (::ioctl(directory, FS_IOC_GETFLAGS, &flags) == 0 ? flags != 0 : errno != ENOTTY && errno != EOPNOTSUPP) return false;
  const ssize_t attributes = ::flistxattr(directory, nullptr, 0);
  return attributes == 0 || (attributes < 0 && errno == ENOTSUP);
}

Failure mount_writable(const WritableLimits& limits, const Identity& owner) {
  if (fault_at(Step::mount_tmpfs) ||
      ::mount("sandbox", kWritable, "tmpfs", MS_NOSUID | MS_NODEV, tmpfs_options(limits).c_str()) != 0 || ::chdir(kWritable) != 0) {
    return {Step::mount_tmpfs, errno};
  }
  for (const char* directory : kDirectories) {
    if (::mkdir(directory, kDirectoryMode) != 0) return {Step::mount_tmpfs, errno};
    if (owner.change && ::chown(directory, owner.id, owner.id) != 0) return {Step::mount_tmpfs, errno};
  }
  return {};
}

}  // namespace

bool Place::nearly_empty(std::size_t given) const {
  constexpr std::uint64_t kBytes = 64 << 10;
  struct statfs space {};
  return ::fstatfs(files_.get(), &space) == 0 && space.f_files - space.f_ffree <= kOwnInodes + given &&
         (space.f_blocks - space.f_bfree) * static_cast<std::uint64_t>(space.f_bsize) <= kBytes;
}

bool Place::renew(const Identity& owner, std::span<const std::string> given) const {
  // Where program and broker are the same user to the host, the program may have put anything in the place of a directory: no link is
  // followed, and no name has a slash.
  const auto open_directory = [this](const char* name) { return UniqueFd(::openat(files_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); };
  if (!given.empty()) {
    const UniqueFd box = open_directory(kDirectories[0]);
    for (const std::string& name : given) (void)::unlinkat(box.get(), name.c_str(), 0);
  }
  struct statfs space {};
  if (::fstatfs(files_.get(), &space) != 0 || space.f_bfree != space.f_blocks || space.f_files - space.f_ffree != kOwnInodes) return false;
  const auto ours = static_cast<unsigned>(std::size(kDirectories));
  if (!pristine(files_.get(), kRootMode, ours, ::geteuid(), ::getegid()) || ::futimens(files_.get(), nullptr) != 0) return false;
  const uid_t uid = owner.change ? owner.id : ::geteuid();
  const gid_t gid = owner.change ? owner.id : ::getegid();
  for (const char* name : kDirectories) {
    const UniqueFd directory = open_directory(name);
    if (!directory.valid() || !pristine(directory.get(), kDirectoryMode, 0, uid, gid) || ::futimens(directory.get(), nullptr) != 0) return false;
  }
  return true;
}

Failure enter_new_place(int template_mounts, const WritableLimits& limits, const Identity& owner, Place& place) {
  // The template has no /proc.
  const UniqueFd self(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fault_at(Step::mount_namespace) || ::setns(template_mounts, CLONE_NEWNS) != 0 || ::unshare(CLONE_NEWNS) != 0) return {Step::mount_namespace, errno};
  UniqueFd mounts(::openat(self.get(), "ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!mounts.valid()) return {Step::mount_namespace, errno};
  if (const Failure failure = mount_writable(limits, owner)) return failure;
  place = Place(std::move(mounts), UniqueFd(::open(kWritable, O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  return {};
}

Failure enter_place(int mounts) {
  if (fault_at(Step::mount_namespace) || ::setns(mounts, CLONE_NEWNS) != 0) return {Step::mount_namespace, errno};
  return {};
}

Failure resize_writable(const WritableLimits& limits) {
  if (fault_at(Step::resize_tmpfs) ||
      ::mount("sandbox", kWritable, "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, tmpfs_options(limits).c_str()) != 0) {
    return {Step::resize_tmpfs, errno};
  }
  return {};
}

}  // namespace fixpoint::sandbox::detail
