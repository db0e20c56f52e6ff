#include "sandbox/detail/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace fixpoint::sandbox::detail {

namespace {

// Access rights newer than the oldest kernel headers this builds with, by their number in the kernel's interface.
constexpr std::uint64_t kRefer = 1ULL << 13;       // version 2
constexpr std::uint64_t kTruncate = 1ULL << 14;    // version 3
constexpr std::uint64_t kDeviceIoctl = 1ULL << 15; // version 5
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kVersion1 = (1ULL << 13) - 1;

struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;  // version 4: bind 1, connect 2
  std::uint64_t scoped = 0;   // version 6: abstract unix sockets 1, signals 2
};

std::uint64_t handled_files(int version) {
  return kVersion1 | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0) | (version >= 5 ? kDeviceIoctl : 0);
}

std::size_t ruleset_size(int version) {
  return version >= 6 ? sizeof(Ruleset) : version >= 4 ? 2 * sizeof(std::uint64_t) : sizeof(std::uint64_t);
}

bool allow(int ruleset, const char* path, std::uint64_t access) {
  const int directory = ::open(path, O_PATH | O_CLOEXEC);
  if (directory < 0) return false;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = directory;
  const bool good = ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  const int error = errno;
  ::close(directory);
  errno = error;
  return good;
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : static_cast<int>(version);
}

Failure restrict_files(int version, const char* writable) {
  if (version == 0) return {};
  if (fault_at(Step::landlock)) return {Step::landlock, errno};
  Ruleset attributes;
  attributes.files = handled_files(version);
  attributes.network = 3;
  attributes.scoped = 3;
  const long ruleset = ::syscall(SYS_landlock_create_ruleset, &attributes, ruleset_size(version), 0);
  if (ruleset < 0) return {Step::landlock, errno};
  const int fd = static_cast<int>(ruleset);
  const std::uint64_t devices = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR | (version >= 3 ? kTruncate : 0);
  const bool good = allow(fd, "/", kRead) && allow(fd, writable, attributes.files) && allow(fd, "/dev", devices) &&
                    ::syscall(SYS_landlock_restrict_self, fd, 0) == 0;
  const int error = errno;
  ::close(fd);
  return good ? Failure{} : Failure{Step::landlock, error};
}

}  // namespace fixpoint::sandbox::detail
