// Loaded into a prepared interpreter (as a shared library, through its foreign function interface). The interpreter's own
// code forks; what stands here brings the child into a run and confines it with the same steps as any other program.

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <variant>
#include <vector>

#include "sandbox/detail/box_files.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/target.h"

namespace {

using namespace fixpoint::sandbox::detail;

constexpr int kControl = 3;
/// Where a child that was started ahead gets its job; the judge's two descriptors stand here and next to it later.
constexpr int kQuestions = 3;
constexpr int kAnswers = 4;

struct Zygote {
  UniqueFd signals;
  std::vector<std::uint64_t> filter;
  ForkFrame request;
  std::vector<UniqueFd> descriptors;
};

Zygote& zygote() {
  static Zygote instance;
  return instance;
}

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

void send_report(Report::Kind kind, std::initializer_list<std::uint64_t> values) {
  Report report;
  report.kind = kind;
  std::size_t i = 0;
  for (const std::uint64_t value : values) report.values[i++] = value;
  (void)send_message(kControl, std::as_bytes(std::span(&report, 1)), {});
}

void reap() {
  signalfd_siginfo pending{};
  (void)!::read(zygote().signals.get(), &pending, sizeof pending);
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    send_report(Report::Kind::child_ended,
                {static_cast<std::uint64_t>(pid), static_cast<std::uint64_t>(static_cast<std::uint32_t>(status)),
                 microseconds(usage.ru_utime), microseconds(usage.ru_stime),
                 static_cast<std::uint64_t>(usage.ru_maxrss) * 1024});
  }
}

/// True when there is a program to fork.
bool accept(Message& message) {
  auto frame = parse_frame(message.bytes);
  if (!frame) return false;
  if (auto* policy = std::get_if<PolicyFrame>(&*frame)) zygote().filter = std::move(policy->program);
  auto* request = std::get_if<ForkFrame>(&*frame);
  if (request == nullptr || message.descriptors.size() < 5U + 2U * request->judge) return false;
  injected_fault = {static_cast<Step>(request->fault_step), request->fault_kill != 0};
  zygote().request = std::move(*request);
  zygote().descriptors = std::move(message.descriptors);
  return true;
}

Failure enter_run() {
  const ForkFrame& request = zygote().request;
  const auto& fds = zygote().descriptors;
  for (std::size_t i = 5U + 2U * request.judge; i < fds.size(); ++i) {
    if (::write(fds[i].get(), "0", 1) != 1) return {Step::join_cgroup, errno};
  }
  if (fault_at(Step::enter_namespaces) || ::setns(fds[0].get(), static_cast<int>(request.namespaces)) != 0) return {Step::enter_namespaces, errno};
  if (request.nested_user_namespace != 0 && ::unshare(CLONE_NEWUSER) != 0) return {Step::enter_namespaces, errno};
  return {};
}

TargetPlan make_plan() {
  const ForkFrame& request = zygote().request;
  const auto& fds = zygote().descriptors;
  TargetPlan plan;
  for (std::size_t i = 0; i < 3; ++i) plan.streams[i] = fds[2 + i].get();
  if (request.judge != 0) {
    plan.questions = fds[5].get();
    plan.answers = fds[6].get();
  }
  plan.limits = {request.cpu_milliseconds, request.file_bytes, request.address_space_bytes, request.processes};
  plan.identity = {request.change_uid != 0, request.uid};
  plan.landlock_version = static_cast<int>(request.landlock_version);
  plan.filter = zygote().filter;
  plan.notify = request.notify != 0;
  return plan;
}

bool place_judge(const LaunchFrame& job, const std::vector<UniqueFd>& descriptors) {
  if (!job.has(LaunchFrame::judge)) {
    ::close(kQuestions);
    ::close(kAnswers);
    return descriptors.empty();
  }
  return descriptors.size() == 2 && ::dup2(descriptors[0].get(), kQuestions) == kQuestions &&
         ::dup2(descriptors[1].get(), kAnswers) == kAnswers;
}

}  // namespace

extern "C" {

/// Once, before the first receive.
int fixpoint_zygote_prepare() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  zygote().signals.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  return zygote().signals.valid() ? 0 : -1;
}

/// Blocks until there is a program to fork (1) or the broker is gone (0). What the caller forks next is born in the run's
/// pid namespace.
int fixpoint_zygote_receive() {
  while (true) {
    pollfd files[2] = {{kControl, POLLIN, 0}, {zygote().signals.get(), POLLIN, 0}};
    if (::poll(files, 2, -1) < 0) continue;
    if (files[1].revents != 0) reap();
    if (files[0].revents == 0) continue;
    std::optional<Message> message = receive_message(kControl, false);
    if (!message && errno == EAGAIN) continue;
    if (!message || !unfold_frame(*message)) return 0;
    if (!accept(*message)) continue;
    if (::setns(zygote().descriptors[0].get(), CLONE_NEWPID) == 0) return 1;
    const Failure failure{Step::enter_namespaces, errno};
    (void)send_message(zygote().descriptors[1].get(), std::as_bytes(std::span(&failure, 1)), {});
    zygote().descriptors.clear();
  }
}

/// In the parent, after the fork.
void fixpoint_zygote_forked(int pid) {
  zygote().descriptors.clear();
  if (pid > 0) send_report(Report::Kind::forked, {zygote().request.token, static_cast<std::uint64_t>(pid)});
}

/// In the child: 0 when it is confined and may run the program; anything else must end it.
int fixpoint_zygote_confine() {
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  TargetResult result;
  result.failure = enter_run();
  const TargetPlan plan = make_plan();
  if (!result.failure) confine(plan, result);
  // Out of the way of the program's descriptors, which confine has put at 0 to 4.
  const int link = zygote().descriptors[1].get();
  const std::span<const int> listener(&result.listener, result.listener >= 0 ? 1 : 0);
  if (!send_message(link, std::as_bytes(std::span(&result.failure, 1)), listener) || result.failure) return 1;
  char go = 0;
  while (::read(link, &go, 1) < 0 && errno == EINTR) {
  }
  if (go != 1) return 1;
  const unsigned first = zygote().request.judge != 0 ? 5 : 3;
  for (UniqueFd& fd : zygote().descriptors) (void)fd.release();
  (void)zygote().signals.release();
  return ::syscall(SYS_close_range, first, ~0U, 0) == 0 ? 0 : 1;
}

/// 1 in a child that is started ahead: then it takes its job before it runs.
int fixpoint_zygote_waits() { return static_cast<int>(zygote().request.wait_for_job); }

/// Says that it waits; blocks until there is a job (0), or nobody will ever send one (1), or it is not one (2).
int fixpoint_zygote_take_job() {
  if (::write(kAnswers, "", 1) != 1) return 1;
  std::optional<Message> message = receive_message(kQuestions, true);
  if (!message) return 1;
  if (!unfold_frame(*message)) return 2;
  auto frame = parse_frame(message->bytes);
  auto* job = frame ? std::get_if<LaunchFrame>(&*frame) : nullptr;
  if (job == nullptr || !place_judge(*job, message->descriptors)) return 2;
  const UniqueFd box(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (write_inputs(box.get(), job->files)) return 2;
  zygote().request.arguments = std::move(job->arguments);
  zygote().request.environment = std::move(job->environment);
  return 0;
}

int fixpoint_zygote_argument_count() { return static_cast<int>(zygote().request.arguments.size()); }
const char* fixpoint_zygote_argument(int index) {
  return zygote().request.arguments[static_cast<std::size_t>(index)].c_str();
}
int fixpoint_zygote_environment_count() { return static_cast<int>(zygote().request.environment.size()); }
const char* fixpoint_zygote_environment(int index) {
  return zygote().request.environment[static_cast<std::size_t>(index)].c_str();
}
}
