#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "sandbox/detail/broker.h"
#include "sandbox/detail/own_text.h"
#include "sandbox/detail/privileges.h"

namespace {

using namespace fixpoint::sandbox::detail;

constexpr const char* kInside = "in-user-namespace";

/// An ordinary user's broker becomes privileged in a user namespace of its own, and executes itself again there: only then
/// does its memory belong to that namespace, so that it may look after the processes that it makes. Returns what failed.
std::string enter_own_namespace(char* name) {
  const Failure failure = enter_user_namespace();
  if (failure) return std::string(fixpoint::sandbox::detail::name(failure.step)) + ": " + std::strerror(failure.error);
  // Mounts can be made only in a mount namespace that belongs to this user namespace.
  if (::unshare(CLONE_NEWNS) != 0) return std::string("mount namespace: ") + std::strerror(errno);
  if (!keep_capabilities()) return std::string("capabilities: ") + std::strerror(errno);
  char* arguments[] = {name, const_cast<char*>(kInside), nullptr};
  char* environment[] = {nullptr};
  ::execve("/proc/self/exe", arguments, environment);
  return std::string("execute again: ") + std::strerror(errno);
}

}  // namespace

// One small static executable with two faces: the broker, and the probe that runs inside a sandbox.
int main(int argc, char** argv) {
  if (argc > 0 && std::strcmp(argv[0], "fixpoint-sandbox-probe") == 0) return run_probe();
  const bool inside = argc > 1 && std::strcmp(argv[1], kInside) == 0;
  std::string failure;
  if (!inside && ::geteuid() != 0) failure = enter_own_namespace(argv[0]);
  take_text_from_its_file();
  return run_broker(3, inside, failure);
}
