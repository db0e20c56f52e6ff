#include "sandbox/detail/namespaces.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace fixpoint::sandbox::detail {

std::optional<JoinedNamespaces> NamespacePool::make() const {
  if (::unshare(kinds_) != 0) return std::nullopt;
  JoinedNamespaces made;
  if ((kinds_ & CLONE_NEWNET) != 0) made.network.reset(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if ((kinds_ & CLONE_NEWIPC) != 0) made.ipc.reset(::open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC));
  return whole(made) ? std::optional(std::move(made)) : std::nullopt;
}

std::optional<JoinedNamespaces> NamespacePool::take() {
  if (kinds_ == 0) return JoinedNamespaces{};
  if (idle_.empty()) return make();
  JoinedNamespaces namespaces = std::move(idle_.front());
  idle_.erase(idle_.begin());
  return namespaces;
}

bool NamespacePool::whole(const JoinedNamespaces& namespaces) const {
  return ((kinds_ & CLONE_NEWNET) == 0 || namespaces.network.valid()) && ((kinds_ & CLONE_NEWIPC) == 0 || namespaces.ipc.valid());
}

void NamespacePool::give_back(JoinedNamespaces namespaces) {
  constexpr std::size_t kMost = 16;
  if (kinds_ != 0 && idle_.size() < kMost && whole(namespaces)) idle_.push_back(std::move(namespaces));
}

bool NamespacePool::refill(std::size_t wanted) {
  if (kinds_ == 0 || idle_.size() >= wanted) return false;
  std::optional<JoinedNamespaces> made = make();
  if (!made) return false;
  idle_.push_back(std::move(*made));
  return true;
}

bool join(int network, int ipc) {
  return (network < 0 || ::setns(network, CLONE_NEWNET) == 0) && (ipc < 0 || ::setns(ipc, CLONE_NEWIPC) == 0);
}

bool enter_host_name_namespace() {
  constexpr char kName[] = "sandbox";
  return ::unshare(CLONE_NEWUTS) == 0 && ::sethostname(kName, sizeof kName - 1) == 0;
}

pid_t clone_process(const Clone& options, UniqueFd& pidfd) {
  int handle = -1;
  clone_args arguments{};
  arguments.flags = options.namespaces | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&handle);
  arguments.exit_signal = SIGCHLD;
  if (options.cgroup >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(options.cgroup);
  }
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (child > 0) pidfd.reset(handle);
  return child;
}

NamespaceIds own_namespaces() {
  const auto read = [](const char* path) {
    char target[64];
    const ssize_t size = ::readlink(path, target, sizeof target);
    return std::string(target, size < 0 ? 0 : static_cast<std::size_t>(size));
  };
  return {read("/proc/self/ns/ipc"), read("/proc/self/ns/uts"), read("/proc/self/ns/net"), read("/proc/self/ns/cgroup")};
}

NamespaceIds namespaces_of_child(const Clone& options, const JoinedNamespaces& joined, bool cgroup_namespace) {
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) return {};
  const UniqueFd read_end(gate[0]);
  UniqueFd write_end(gate[1]);
  UniqueFd pidfd;
  const pid_t child = clone_process(options, pidfd);
  if (child == 0) {
    (void)join(joined.network.get(), joined.ipc.get());
    if (cgroup_namespace) (void)::unshare(CLONE_NEWCGROUP);
    const NamespaceIds ids = own_namespaces();
    const std::string text = ids.ipc + "\n" + ids.uts + "\n" + ids.net + "\n" + ids.cgroup + "\n";
    (void)!::write(write_end.get(), text.data(), text.size());
    ::_exit(0);
  }
  write_end.reset();
  NamespaceIds ids;
  if (child < 0) return ids;
  char text[512];
  const ssize_t size = ::read(read_end.get(), text, sizeof text);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::string_view rest(text, size < 0 ? 0 : static_cast<std::size_t>(size));
  for (std::string* id : {&ids.ipc, &ids.uts, &ids.net, &ids.cgroup}) {
    *id = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), id->size() + 1));
  }
  return ids;
}

}  // namespace fixpoint::sandbox::detail
