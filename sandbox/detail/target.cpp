#include "sandbox/detail/target.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sandbox/detail/landlock.h"
#include "sandbox/detail/limits.h"
#include "sandbox/detail/place.h"

namespace fixpoint::sandbox::detail {

namespace {

Failure load_filter(const TargetPlan& plan, int& listener) {
  if (plan.filter.empty()) return {};
  static_assert(sizeof(sock_filter) == sizeof(std::uint64_t));
  sock_fprog program{};
  program.len = static_cast<unsigned short>(plan.filter.size());
  program.filter = reinterpret_cast<sock_filter*>(const_cast<std::uint64_t*>(plan.filter.data()));
  if (fault_at(Step::seccomp)) return {Step::seccomp, errno};
  const unsigned flags = plan.notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  const long loaded = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (loaded < 0) return {Step::seccomp, errno};
  if (plan.notify) listener = static_cast<int>(loaded);
  return {};
}

}  // namespace

Failure place_streams(const Streams& streams) {
  // The broker keeps descriptors 0 to 15 occupied, so no move overwrites the source of a later one.
  for (int i = 0; i < 3; ++i) {
    if (fault_at(Step::standard_streams) || ::dup2(streams.standard[i], i) < 0) return {Step::standard_streams, errno};
  }
  if (streams.questions >= 0 && (::dup2(streams.questions, 3) < 0 || ::dup2(streams.answers, 4) < 0)) {
    return {Step::standard_streams, errno};
  }
  // Marked rather than closed: an init, which shares the table until execve, goes on using them.
  const unsigned first = streams.questions >= 0 ? 5 : 3;
  if (fault_at(Step::close_descriptors) || ::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return {Step::close_descriptors, errno};
  return {};
}

void confine(const TargetPlan& plan, TargetResult& result) {
  if (fault_at(Step::new_session) || (::setsid() < 0 && errno != EPERM)) {
    result.failure = {Step::new_session, errno};
    return;
  }
  ::umask(022);
  if (fault_at(Step::change_directory) || ::chdir(kBox) != 0) {
    result.failure = {Step::change_directory, errno};
    return;
  }
  if ((result.failure = set_usual_limits())) return;
  if ((result.failure = drop_privileges(plan.identity))) return;
  if ((result.failure = restrict_files(plan.landlock_version, kWritable))) return;
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  result.failure = load_filter(plan, result.listener);
}

}  // namespace fixpoint::sandbox::detail
