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

UniqueFd NetworkPool::make() {
  if (::unshare(CLONE_NEWNET) != 0) return UniqueFd();
  return UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

UniqueFd NetworkPool::take() {
  if (idle_.empty()) return make();
  UniqueFd network = std::move(idle_.back());
  idle_.pop_back();
  return network;
}

void NetworkPool::give_back(UniqueFd network) { idle_.push_back(std::move(network)); }

bool NetworkPool::refill(std::size_t wanted) {
  if (idle_.size() >= wanted) return false;
  UniqueFd network = make();
  if (!network.valid()) return false;
  idle_.push_back(std::move(network));
  return true;
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

NamespaceIds namespaces_of_child(const Clone& options, int network, bool cgroup_namespace) {
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) return {};
  const UniqueFd read_end(gate[0]);
  UniqueFd write_end(gate[1]);
  UniqueFd pidfd;
  const pid_t child = clone_process(options, pidfd);
  if (child == 0) {
    if (network >= 0) (void)::setns(network, CLONE_NEWNET);
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
