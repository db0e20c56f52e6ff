#include "sandbox/detail/rootfs.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "sandbox/detail/channel.h"

// glibc's <sys/mount.h> and <linux/mount.h> of Debian 12 do not go together; the former's functions are declared here.
extern "C" {
int mount(const char* source, const char* target, const char* type, unsigned long flags, const void* data) noexcept;
int umount2(const char* target, int flags) noexcept;
}

namespace fixpoint::sandbox::detail {

namespace {

constexpr const char* kStage = "/tmp";  // hidden in the template's own namespace only
constexpr int kDetach = 2;              // MNT_DETACH

UniqueFd clone_tree(const std::string& path, bool recursive) {
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0U);
  UniqueFd tree(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), flags)));
  if (!tree.valid()) return tree;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  attributes.propagation = MS_PRIVATE;
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0) {
    tree.reset();
  }
  return tree;
}

bool attach(int tree, const std::string& target) {
  return ::syscall(SYS_move_mount, tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool make_directories(const std::string& path) {
  for (std::size_t at = 1; at != std::string::npos; ++at) {
    at = path.find('/', at);
    if (::mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST) return false;
    if (at == std::string::npos) break;
  }
  return true;
}

bool write_text(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  return file.valid() && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void copy_file(const char* from, const std::string& to) {
  const UniqueFd source(::open(from, O_RDONLY | O_CLOEXEC));
  const UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  char buffer[16384];
  ssize_t got = 0;
  while (source.valid() && target.valid() && (got = ::read(source.get(), buffer, sizeof buffer)) > 0) {
    if (::write(target.get(), buffer, static_cast<std::size_t>(got)) != got) return;
  }
}

struct Root {
  std::string path;
  UniqueFd tree;
  bool directory = false;
};

/// Opened while the host's file system is still in sight.
bool open_roots(const std::vector<std::string>& paths, bool recursive, std::vector<Root>& roots) {
  for (const std::string& path : paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT) continue;  // an optional directory of a toolchain
      return false;
    }
    UniqueFd tree = clone_tree(path, recursive);
    if (!tree.valid()) return false;
    roots.push_back({path, std::move(tree), S_ISDIR(status.st_mode)});
  }
  return true;
}

bool attach_roots(const std::vector<Root>& roots) {
  for (const Root& root : roots) {
    const std::string target = kStage + root.path;
    if (root.directory) {
      if (!make_directories(target)) return false;
    } else if (!make_directories(target.substr(0, target.rfind('/'))) || !write_text(target, "")) {
      return false;
    }
    if (!attach(root.tree.get(), target)) return false;
  }
  return true;
}

/// /bin, /lib and so on, as the host has them.
void copy_top_links() {
  for (const char* link : {"/bin", "/sbin", "/lib", "/lib64", "/lib32"}) {
    char target[256];
    const ssize_t size = ::readlink(link, target, sizeof target - 1);
    if (size <= 0) continue;
    target[size] = '\0';
    (void)!::symlink(target, (std::string(kStage) + link).c_str());
  }
}

bool make_devices() {
  const std::string dev = std::string(kStage) + "/dev";
  if (!make_directories(dev)) return false;
  for (const char* device : {"null", "zero", "full", "random", "urandom"}) {
    const std::string target = dev + "/" + device;
    const std::string source = std::string("/dev/") + device;
    struct stat status {};
    if (::stat(source.c_str(), &status) != 0) return false;
    if (::mknod(target.c_str(), S_IFCHR | 0666, status.st_rdev) == 0) {
      if (::chmod(target.c_str(), 0666) != 0) return false;
      continue;
    }
    // Without root no device can be made; it can be borrowed.
    const UniqueFd tree(static_cast<int>(
        ::syscall(SYS_open_tree, AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
    if (!tree.valid() || !write_text(target, "") || !attach(tree.get(), target)) return false;
  }
  return ::symlink("/proc/self/fd", (dev + "/fd").c_str()) == 0 &&
         ::symlink("/proc/self/fd/0", (dev + "/stdin").c_str()) == 0 &&
         ::symlink("/proc/self/fd/1", (dev + "/stdout").c_str()) == 0 &&
         ::symlink("/proc/self/fd/2", (dev + "/stderr").c_str()) == 0 &&
         ::symlink("/sandbox/shm", (dev + "/shm").c_str()) == 0;
}

bool make_skeleton() {
  const std::string stage = kStage;
  const bool good = ::mkdir((stage + "/sandbox").c_str(), 0755) == 0 && ::mkdir((stage + "/proc").c_str(), 0555) == 0 &&
                    ::symlink("sandbox/box", (stage + "/box").c_str()) == 0 &&
                    ::symlink("sandbox/tmp", (stage + "/tmp").c_str()) == 0 && make_directories(stage + "/etc") &&
                    write_text(stage + "/etc/passwd", "sandbox:x:1000:1000::/sandbox/box:/usr/sbin/nologin\n") &&
                    write_text(stage + "/etc/group", "sandbox:x:1000:\n") &&
                    write_text(stage + "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n") &&
                    write_text(stage + "/etc/hosts", "127.0.0.1 localhost\n");
  copy_file("/etc/ld.so.cache", stage + "/etc/ld.so.cache");
  return good;
}

bool write_own_files(const std::vector<FrameFile>& files) {
  const std::string directory = std::string(kStage) + "/.fixpoint";
  if (files.empty()) return true;
  if (!make_directories(directory)) return false;
  for (const FrameFile& file : files) {
    if (!write_text(directory + "/" + file.path, file.content)) return false;
  }
  return true;
}

bool make_root(const std::vector<std::string>& paths, const std::vector<FrameFile>& files, bool user_namespace) {
  if (::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  std::vector<Root> roots;
  if (!open_roots(paths, user_namespace, roots)) return false;
  if (::mount("fixpoint-root", kStage, "tmpfs", MS_NOSUID, "mode=0755,size=4m") != 0) return false;
  copy_top_links();
  if (!make_skeleton() || !write_own_files(files) || !make_devices() || !attach_roots(roots)) return false;
  if (::chdir(kStage) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0) return false;
  if (::umount2(".", kDetach) != 0 || ::chdir("/") != 0) return false;
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &read_only, sizeof read_only) == 0;
}

}  // namespace

RootTemplate build_root(const std::vector<std::string>& roots, const std::vector<FrameFile>& files, bool user_namespace) {
  std::optional<SocketPair> sockets = make_socket_pair();
  if (!sockets) return {{}, {Step::prepare_template, errno}};
  const pid_t child = ::fork();
  if (child == 0) {
    int error = ::unshare(CLONE_NEWNS) == 0 ? 0 : errno;
    // Opened by the child itself: its parent, where it is not root, may not look at an undumpable process.
    const UniqueFd mounts(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
    if (error == 0 && (!mounts.valid() || !make_root(roots, files, user_namespace))) error = errno == 0 ? EIO : errno;
    const int descriptor = mounts.get();
    const std::span<const int> descriptors(&descriptor, error == 0 ? 1 : 0);
    (void)send_message(sockets->second.get(), std::as_bytes(std::span(&error, 1)), descriptors);
    ::_exit(0);
  }
  if (child < 0) return {{}, {Step::prepare_template, errno}};
  sockets->second.reset();
  std::optional<Message> message = receive_message(sockets->first.get(), true);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  RootTemplate result;
  int error = EIO;
  if (message && message->bytes.size() == sizeof error) std::memcpy(&error, message->bytes.data(), sizeof error);
  if (error == 0 && !message->descriptors.empty()) result.mount_namespace = std::move(message->descriptors[0]);
  if (!result.mount_namespace.valid()) result.failure = {Step::prepare_template, error == 0 ? EIO : error};
  return result;
}

OwnProc make_own_proc() {
  const auto failed = [] { return OwnProc{{}, {Step::mount_proc, errno}}; };
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC)));
  if (!context.valid()) return failed();
  // Since Linux 5.8; an older kernel shows more of the machine, but still only this namespace's processes.
  (void)::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "subset", "pid", 0);
  (void)::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "hidepid", "invisible", 0);
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return failed();
  constexpr unsigned kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  OwnProc proc{UniqueFd(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, kAttributes))), {}};
  return proc.mount.valid() ? std::move(proc) : failed();
}

Failure attach_own_proc(const OwnProc& proc) {
  if (proc.failure) return proc.failure;
  return !fault_at(Step::mount_proc) && attach(proc.mount.get(), "/proc") ? Failure{} : Failure{Step::mount_proc, errno};
}

}  // namespace fixpoint::sandbox::detail
