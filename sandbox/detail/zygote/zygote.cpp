// Loaded into a prepared interpreter (as a shared library, through its foreign function interface). The interpreter's own
// code forks; what stands here brings the child into a run and confines it with the same steps as any other program.

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <variant>
#include <vector>

#include "sandbox/detail/box_files.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/limits.h"
#include "sandbox/detail/privileges.h"
#include "sandbox/detail/target.h"
#include "sandbox/detail/zygote/usual_pages.h"

namespace {

using namespace fixpoint::sandbox::detail;

constexpr int kControl = 3;
/// Where a child that was started ahead gets its job; the judge's two descriptors stand here and next to it later.
constexpr int kQuestions = 3;
constexpr int kAnswers = 4;

struct Zygote {
  std::vector<std::uint64_t> filter;
  ForkFrame request;
  std::vector<UniqueFd> descriptors;
  PageFiles memory;  ///< ours and the trial's
  UsualPages usual;  ///< what a program touches
  bool bounded = false;  ///< the bounding set is empty, and so is a child's in the same user namespace
};

Zygote& zygote() {
  static Zygote instance;
  return instance;
}

void send_report(Report::Kind kind, std::initializer_list<std::uint64_t> values) {
  Report report;
  report.kind = kind;
  std::size_t i = 0;
  for (const std::uint64_t value : values) report.values[i++] = value;
  (void)send_message(kControl, std::as_bytes(std::span(&report, 1)), {});
}

/// True when there is a program to fork.
bool accept(Message& message) {
  auto frame = parse_frame(message.bytes);
  if (!frame) return false;
  if (auto* policy = std::get_if<PolicyFrame>(&*frame)) zygote().filter = std::move(policy->program);
  auto* request = std::get_if<ForkFrame>(&*frame);
  if (request == nullptr || message.descriptors.size() < 5U + 2U * request->judge) return false;
  injected_fault = {static_cast<Step>(request->fault_step), static_cast<fixpoint::sandbox::Fault>(request->fault)};
  zygote().request = std::move(*request);
  zygote().descriptors = std::move(message.descriptors);
  return true;
}

/// Waits for the init's next word: that the run's namespaces stand, that the program may go. False where it ended instead.
bool read_word(int link) {
  char word = 0;
  while (::read(link, &word, 1) < 0 && (errno == EINTR || errno == ECONNRESET)) {
  }
  return word == 1;
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

Failure take_job() {
  const ForkFrame& request = zygote().request;
  const auto& fds = zygote().descriptors;
  Streams streams;
  for (std::size_t i = 0; i < 3; ++i) streams.standard[i] = fds[2 + i].get();
  if (request.judge != 0) {
    streams.questions = fds[5].get();
    streams.answers = fds[6].get();
  }
  if (const Failure failure = place_streams(streams)) return failure;
  return set_resource_limits({request.cpu_milliseconds, request.file_bytes, request.address_space_bytes, request.processes});
}

TargetPlan make_plan() {
  const ForkFrame& request = zygote().request;
  return {{request.change_uid != 0, request.uid, zygote().bounded && request.nested_user_namespace == 0},
          static_cast<int>(request.landlock_version), zygote().filter, request.notify != 0};
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

// Of the interpreter that loads us.
void PyOS_BeforeFork();
void PyOS_AfterFork_Parent();
void PyOS_AfterFork_Child();

void fixpoint_zygote_forked(int pid);

/// Once, before the first receive. `trial`: the pid of a child that will do what programs do, or 0.
void fixpoint_zygote_prepare(int trial) {
  zygote().bounded = capabilities_bounded();
  send_report(Report::Kind::ready, {static_cast<std::uint64_t>(trial)});
}

/// Blocks until there is a program to fork (1), the trial is to begin (2), it is of no use because its pages can't be seen (3) or the
/// broker is gone (0). After 1, what fixpoint_zygote_fork makes is born in the run's pid namespace.
int fixpoint_zygote_receive() {
  while (true) {
    std::optional<Message> message = receive_message(kControl, true);
    if (!message) return 0;
    const auto report = parse_report(message->bytes);
    if (report && report->kind == Report::Kind::memory) {
      auto& files = message->descriptors;
      if (files.size() != 2) return 3;
      zygote().memory = {std::move(files[0]), std::move(files[1])};
      return 2;
    }
    if (!unfold_frame(*message)) return 0;
    if (!accept(*message)) continue;
    if (::setns(zygote().descriptors[0].get(), CLONE_NEWPID) == 0) return 1;
    const Failure failure{Step::enter_namespaces, errno};
    (void)send_message(zygote().descriptors[1].get(), std::as_bytes(std::span(&failure, 1)), {});
    fixpoint_zygote_forked(0);
  }
}

/// Like os.fork, but the child is the broker's, which learns of its end without us. Its first act, while it has only run on one
/// processor and nothing waits for it, is to map and copy the usual pages in one go: a fault for each costs twice as much, and
/// where several processors take faults at once in a virtual machine, four times as much.
int fixpoint_zygote_fork() {
  // The thread's number in the C library's own notes, which its fork sets; null where the kernel does not tell.
  int* own_number = nullptr;
  if (::prctl(PR_GET_TID_ADDRESS, &own_number, 0, 0, 0) != 0) own_number = nullptr;
  const unsigned long flags = CLONE_PARENT | (own_number != nullptr ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0);
  PyOS_BeforeFork();
  const long pid = ::syscall(SYS_clone, flags, nullptr, nullptr, own_number, 0UL);
  if (pid == 0) {
    touch_pages(zygote().usual);
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return static_cast<int>(pid);
}

/// In the parent, after the fork; `pid` is not positive where it failed.
void fixpoint_zygote_forked(int pid) {
  zygote().descriptors.clear();
  send_report(Report::Kind::forked, {zygote().request.init, static_cast<std::uint64_t>(std::max(pid, 0))});
}

/// While the trial still has its copies of the pages that it wrote to.
void fixpoint_zygote_learn() {
  zygote().usual = usual_pages(zygote().memory);
  zygote().memory = {};
}

/// In the child: 0 when it is confined and may run the program; anything else must end it.
int fixpoint_zygote_confine() {
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  if (!read_word(zygote().descriptors[1].get())) return 1;  // the init ended before it had made the run's namespaces
  TargetResult result;
  result.failure = enter_run();
  if (!result.failure) result.failure = take_job();
  if (!result.failure) confine(make_plan(), result);
  // Out of the way of the program's descriptors, which are at 0 to 4.
  const int link = zygote().descriptors[1].get();
  const std::span<const int> listener(&result.listener, result.listener >= 0 ? 1 : 0);
  if (!send_message(link, std::as_bytes(std::span(&result.failure, 1)), listener) || result.failure) return 1;
  if (!read_word(link)) return 1;
  const unsigned first = zygote().request.judge != 0 ? 5 : 3;
  for (UniqueFd& fd : zygote().descriptors) (void)fd.release();
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
