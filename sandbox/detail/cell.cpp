#include "sandbox/detail/cell.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>

#include "sandbox/detail/box_files.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/namespaces.h"
#include "sandbox/detail/rootfs.h"
#include "sandbox/detail/target.h"
#include "sandbox/detail/waiting_program.h"

namespace fixpoint::sandbox::detail {

namespace {

/// Below are the program's.
constexpr unsigned kFirstOwn = 16;

/// A zygote that takes longer to fork is broken.
constexpr int kForkTimeoutMs = 20'000;

/// A program that has ended by then is not announced.
constexpr int kMomentMs = 2;

/// So many dead orphans are reaped at a program's end; where there are more, some are still being made.
constexpr int kOrphans = 4096;

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// What a program used, besides what the cgroups say.
struct Ended {
  std::uint64_t user_microseconds = 0;
  std::uint64_t system_microseconds = 0;
  std::uint64_t peak_resident_bytes = 0;
};

class Cell {
 public:
  explicit Cell(const CellPlan& plan) : plan_(plan) {}

  [[noreturn]] void run();

 private:
  void prepare();
  void close_inherited() const;
  void stand_by();
  bool receive();
  void place_files();
  void prepare_program(std::uint32_t policy);
  void start_program();
  void adopt_program();
  void withdraw();
  void let_go();
  void settle();
  void settle_in_time();
  [[noreturn]] void watch();
  void reap(int options);
  void take_denied_call();
  void take_broker_message();
  static bool alone();
  [[nodiscard]] bool leaves_place() const;
  [[noreturn]] void finish(int status, const Ended& ended, bool last);
  [[noreturn]] void fail();
  void say(Word word, std::initializer_list<int> descriptors = {}) const;
  static Report make_report(Report::Kind kind, std::initializer_list<std::uint64_t> values);
  void send(std::span<const Report> reports);

  const CellPlan& plan_;
  Failure failure_;
  Place place_;
  LaunchFrame launch_;
  std::vector<UniqueFd> fds_;  // stdin, stdout, stderr, report, …
  TargetPlan target_;
  UniqueFd signals_;
  UniqueFd listener_;
  UniqueFd box_;
  UniqueFd self_;
  std::uint64_t used_before_ = 0;  ///< CPU us
  std::uint64_t started_at_ = 0;   ///< ns of the steady clock; 0 before the program may go
  bool announced_ = false;         ///< the monitor knows that it runs
  bool settled_ = false;           ///< what the program alone needs is closed here
  std::vector<char*> arguments_;
  std::vector<char*> environment_;
  int executable_ = -1;
  WaitingProgram program_;
};

Report Cell::make_report(Report::Kind kind, std::initializer_list<std::uint64_t> values) {
  Report report;
  report.kind = kind;
  std::copy(values.begin(), values.end(), report.values);
  return report;
}

void Cell::say(Word word, std::initializer_list<int> descriptors) const {
  (void)send_message(plan_.socket, std::as_bytes(std::span(&word, 1)), std::span(descriptors.begin(), descriptors.size()));
}

/// In one message: each wakes the monitor. The first that it ever hears of a program that runs has what it needs to watch it.
void Cell::send(std::span<const Report> reports) {
  std::vector<Report> all;
  std::vector<int> handles;
  if (!announced_ && started_at_ != 0) {
    announced_ = true;
    const CounterFiles& counters = *plan_.counters;
    all.push_back(make_report(Report::Kind::running,
                              {counters.cpu.valid() ? 1U : 0U, counters.forks.valid() ? 1U : 0U, used_before_, started_at_}));
    handles.push_back(self_.get());
    if (counters.cpu.valid()) handles.push_back(counters.cpu.get());
    if (counters.forks.valid()) handles.push_back(counters.forks.get());
    if (launch_.has(LaunchFrame::keep_box)) handles.push_back(box_.get());
  }
  all.insert(all.end(), reports.begin(), reports.end());
  (void)send_message(fds_[3].get(), std::as_bytes(std::span(all)), handles);
}

void Cell::fail() {
  const Report failed = make_report(Report::Kind::failed, {static_cast<std::uint64_t>(failure_.step), static_cast<std::uint64_t>(failure_.error)});
  (void)send_message(fds_[3].get(), std::as_bytes(std::span(&failed, 1)), {});
  ::_exit(1);
}

/// What does not depend on the job. A failure is kept until there is somebody to tell.
void Cell::prepare() {
  if (fault_at(Step::parent_death_signal) || ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
    failure_ = {Step::parent_death_signal, errno};
    return;
  }
  for (const int procs : plan_.join) {
    if (fault_at(Step::join_cgroup) || ::write(procs, "0", 1) != 1) {
      failure_ = {Step::join_cgroup, errno};
      return;
    }
  }
  if (fault_at(Step::cgroup_namespace) || (plan_.cgroup_namespace && ::unshare(CLONE_NEWCGROUP) != 0)) {
    failure_ = {Step::cgroup_namespace, errno};
    return;
  }
  if (fault_at(Step::join_namespaces) || !join(plan_.network_namespace, plan_.ipc_namespace)) {
    failure_ = {Step::join_namespaces, errno};
    return;
  }
  const OwnProc proc = plan_.mount_proc ? make_own_proc() : OwnProc{};
  if (plan_.place[0] >= 0) {
    place_ = Place(UniqueFd(plan_.place[0]), UniqueFd(plan_.place[1]));
    failure_ = enter_place(place_.mounts());
    return;
  }
  if ((failure_ = enter_new_place(plan_.template_mounts, plan_.writable, plan_.program, place_))) return;
  if (plan_.mount_proc) failure_ = attach_own_proc(proc);
}

/// The copy of the broker's process came with all of its descriptors. The low ones, /dev/null, stay: they are where the program's
/// streams go, and what comes later must not land there.
void Cell::close_inherited() const {
  const CounterFiles& counters = *plan_.counters;
  int kept[] = {plan_.socket, counters.cpu.get(), counters.peak.get(), counters.oom.get(), counters.forks.get(), place_.mounts(), place_.files()};
  std::sort(std::begin(kept), std::end(kept));
  unsigned next = kFirstOwn;
  for (const int fd : kept) {
    if (fd < 0) continue;
    if (static_cast<unsigned>(fd) > next) ::close_range(next, static_cast<unsigned>(fd) - 1, 0);
    next = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(next, ~0U, 0);
}

/// All that can be there before the job is.
void Cell::stand_by() {
  self_.reset(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  box_.reset(::open(kBox, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!self_.valid() || !box_.valid()) {
    failure_ = {Step::write_files, errno};
    return;
  }
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  signals_.reset(::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK));
  if (plan_.policy) prepare_program(*plan_.policy);
  used_before_ = parse_cpu_counter(reread(plan_.counters->cpu));
}

bool Cell::receive() {
  std::optional<Message> message = receive_message(plan_.socket, true);
  if (!message) return false;  // the broker is gone, or does not need this cell
  const bool whole = unfold_frame(*message);
  fds_ = std::move(message->descriptors);
  if (fds_.size() < 4) return false;
  auto frame = whole ? parse_frame(message->bytes) : tl::unexpected(FrameError{});
  if (!frame || !std::holds_alternative<LaunchFrame>(*frame)) {
    failure_ = {Step::receive_request, EBADMSG};
    fail();
  }
  launch_ = std::get<LaunchFrame>(std::move(*frame));
  const std::size_t link = launch_.has(LaunchFrame::fork_zygote) ? 1 : 0;
  if (fault_at(Step::receive_request) || fds_.size() != launch_.descriptors() + link || launch_.policy_id >= plan_.filters->size()) {
    failure_ = {Step::receive_request, EBADMSG};
  }
  if (failure_) fail();
  return true;
}

void Cell::place_files() {
  const WritableLimits wanted{launch_.file_bytes, launch_.inodes};
  if (wanted != plan_.writable && (failure_ = resize_writable(wanted))) fail();
  const int executable = launch_.has(LaunchFrame::executable) ? fds_[launch_.descriptors() - 1].get() : -1;
  const bool placed = launch_.has(LaunchFrame::place_executable);
  if (!placed) executable_ = executable;
  if ((failure_ = write_inputs(box_.get(), launch_.files, placed ? executable : -1))) fail();
}

void Cell::prepare_program(std::uint32_t policy) {
  target_ = {plan_.program, plan_.landlock_version, (*plan_.filters)[policy], plan_.notify};
  failure_ = program_.start(target_, plan_.nested_user_namespace);
}

void Cell::start_program() {
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  arguments_ = pointers(launch_.arguments);
  environment_ = pointers(launch_.environment);
  Streams streams;
  for (int i = 0; i < 3; ++i) streams.standard[i] = fds_[static_cast<std::size_t>(i)].get();
  if (launch_.has(LaunchFrame::judge)) {
    streams.questions = fds_[4].get();
    streams.answers = fds_[5].get();
  }
  if (program_.started() && (launch_.policy_id != plan_.policy || program_.left())) program_.end();
  if (!program_.started()) prepare_program(launch_.policy_id);
  if (!failure_) failure_ = place_streams(streams);
  if (failure_) fail();
  listener_ = program_.take_listener();
  let_go();
  program_.execute({executable_, arguments_.data(), environment_.data(),
                    {launch_.cpu_milliseconds, launch_.file_bytes,
                     launch_.has(LaunchFrame::limit_address_space) ? launch_.memory_bytes : 0,
                     process_rlimit(launch_.processes, (plan_.counted & Report::processes) != 0)}});
}

/// The program comes from a zygote: it has entered these namespaces and confined itself; it waits for a word from here.
void Cell::adopt_program() {
  const int link = fds_.back().get();
  if (program_.started()) program_.end();
  // Before this word the zygote's child would enter what this process came with: the broker's root and network.
  constexpr char kPrepared = 1;
  if (::send(link, &kPrepared, 1, MSG_NOSIGNAL) != 1) {
    failure_ = {Step::fork_zygote, errno};
    fail();
  }
  pollfd files[2] = {{link, POLLIN, 0}, {plan_.socket, POLLIN, 0}};
  while (::poll(files, 2, kForkTimeoutMs) < 0 && errno == EINTR) {
  }
  // A program that could not confine itself says why and ends, and then the broker's word of its end is there as well.
  if (files[0].revents == 0 && files[1].revents != 0) ::_exit(2);
  std::optional<Message> message = receive_message(link, false);
  if (fault_at(Step::fork_zygote) || !message || message->bytes.size() != sizeof failure_) {
    failure_ = {Step::fork_zygote, ECHILD};
    fail();
  }
  std::memcpy(&failure_, message->bytes.data(), sizeof failure_);
  if (failure_) fail();
  if (!message->descriptors.empty()) listener_ = std::move(message->descriptors[0]);
  const UniqueFd own = std::move(fds_.back());
  let_go();
  constexpr char kGo = 1;
  if (::send(own.get(), &kGo, 1, MSG_NOSIGNAL) != 1) {
    failure_ = {Step::fork_zygote, errno};
    fail();
  }
}

/// The program's go comes next. The monitor hears of it first where a second start, after the broker's death, or a late look at what was
/// used so far would make a difference.
void Cell::let_go() {
  withdraw();
  started_at_ = now();
  if (launch_.has(LaunchFrame::judge) || launch_.has(LaunchFrame::wait_for_job)) send({});
}

/// Of a program that runs for longer than a moment: the monitor hears of it, if it has not, and what only the program needs is closed.
/// Of a shorter one it hears when that has ended.
void Cell::settle() {
  if (program_.started() && !program_.left()) return;  // it still uses these descriptors
  if (!announced_) send({});
  settled_ = true;
  // Not what the program writes to: to hear that it is closed would only wake the monitor before there is anything to know.
  ::close_range(0, 4, 0);
  for (std::size_t i = 0; i < fds_.size(); ++i) {
    if (i == 0 || i > 3) fds_[i].reset();
  }
  self_.reset();
  box_.reset();
}

/// By the clock, not where nothing happens for a moment: a program whose orphans end all the time would have no limits.
void Cell::settle_in_time() {
  constexpr std::uint64_t kMomentNs = kMomentMs * 1'000'000ULL;
  if (!settled_ && now() - started_at_ >= kMomentNs) settle();
}

/// From here on the init needs no right at all.
void Cell::withdraw() {
  if ((failure_ = drop_privileges(plan_.init))) fail();
  // A change of uid clears it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

void Cell::take_denied_call() {
  // Room for a kernel whose structures have grown.
  alignas(seccomp_notif) char buffer[512] = {};
  auto* call = reinterpret_cast<seccomp_notif*>(buffer);
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, call) != 0) {
    if (errno != ENOENT && errno != EINTR) listener_.reset();
    return;
  }
  const Report denied = make_report(
      Report::Kind::denied,
      {call->data.arch, static_cast<std::uint64_t>(static_cast<std::uint32_t>(call->data.nr)), call->data.args[0],
       call->data.args[1], call->data.args[2], call->data.args[3], call->data.args[4], call->data.args[5]});
  send(std::span(&denied, 1));
  // The call never returns: everything in the namespace ends with its init. But an init that ends closes its files before it kills, and
  // the call would be answered with ENOSYS in between if nobody else held the listener: the broker does, or the message on its way.
  say(Word::listener, {listener_.get()});
  // A zygote's program is no child of ours: we'd seem alone.
  finish(SIGSYS, {}, false);
}

/// A zygote's child is not ours to wait for; the broker passes on what the zygote saw.
void Cell::take_broker_message() {
  const std::optional<Message> message = receive_message(plan_.socket, false);
  if (!message) ::_exit(2);  // the broker is gone
  const auto ended = parse_report(message->bytes);
  if (!ended || ended->kind != Report::Kind::child_ended) ::_exit(2);
  finish(static_cast<int>(ended->values[1]), {ended->values[2], ended->values[3], ended->values[4]}, alone());
}

/// Whether nothing else lives in this namespace, once the program has ended: what it leaves becomes its init's.
bool Cell::alone() {
  pid_t ended = 1;
  for (int i = 0; ended > 0 && i < kOrphans; ++i) ended = ::wait4(-1, nullptr, WNOHANG | __WALL, nullptr);
  return ended < 0 && errno == ECHILD;
}

/// Nothing but the program had to do with this run's place, and it has not left much in it.
bool Cell::leaves_place() const {
  constexpr std::size_t kGivenFiles = 4;  // to remove more takes longer than to make a new place
  if (plan_.mount_proc || launch_.has(LaunchFrame::keep_box) || WritableLimits{launch_.file_bytes, launch_.inodes} != plan_.writable) return false;
  const auto plain = [](const FrameFile& file) { return file.path.find('/') == std::string::npos; };
  return launch_.files.size() <= kGivenFiles && std::all_of(launch_.files.begin(), launch_.files.end(), plain) &&
         place_.nearly_empty(launch_.files.size());
}

/// `last`: nothing else lives.
void Cell::finish(int status, const Ended& ended, bool last) {
  struct statfs space {};
  const bool full = ::statfs(kWritable, &space) == 0 && (space.f_bfree == 0 || space.f_ffree == 0);
  std::vector<Report> all{make_report(Report::Kind::ended, {static_cast<std::uint64_t>(static_cast<std::uint32_t>(status)),
                                                            ended.user_microseconds, ended.system_microseconds,
                                                            ended.peak_resident_bytes, full ? 1U : 0U})};
  // Otherwise the broker accounts for them, once our end has ended the others.
  if (last) all.push_back(accounted(*plan_.counters, plan_.counted));
  // The broker first: it kills a run whose monitor hangs up before its time.
  if (last && leaves_place()) say(Word::place, {place_.mounts(), place_.files()});
  if (last) say(Word::answered);
  send(all);
  ::_exit(0);
}

void Cell::reap(int options) {
  signalfd_siginfo pending{};
  (void)!::read(signals_.get(), &pending, sizeof pending);
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t ended = ::wait4(-1, &status, options | __WALL, &usage);
    if (ended <= 0) return;
    if (ended != program_.pid()) {
      settle_in_time();
      continue;
    }
    if ((failure_ = program_.failure())) fail();
    rusage children{};
    ::getrusage(RUSAGE_CHILDREN, &children);
    finish(status, {microseconds_of(children.ru_utime), microseconds_of(children.ru_stime),
                    static_cast<std::uint64_t>(usage.ru_maxrss) * 1024}, alone());
  }
}

void Cell::watch() {
  while (true) {
    pollfd files[3] = {{signals_.get(), POLLIN, 0}, {plan_.socket, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    const int ready = ::poll(files, listener_.valid() ? 3 : 2, settled_ ? -1 : kMomentMs);
    settle_in_time();
    if (ready <= 0) continue;
    // A denied call first: the process that made it may have been killed since.
    if (listener_.valid() && (files[2].revents & POLLIN) != 0) take_denied_call();
    // Nobody has the filter any more: all that had it are about to end.
    if (listener_.valid() && (files[2].revents & ~POLLIN) != 0) {
      if (program_.started()) reap(0);
      listener_.reset();
    }
    if (files[1].revents != 0) take_broker_message();
    if (files[0].revents != 0) reap(WNOHANG);
  }
}

void Cell::run() {
  prepare();
  close_inherited();
  if (!failure_) stand_by();
  if (!receive()) ::_exit(0);
  place_files();
  if (launch_.has(LaunchFrame::fork_zygote)) adopt_program();
  else start_program();
  if (announced_) settle();
  watch();
}

}  // namespace

Report accounted(const CounterFiles& counters, std::uint64_t counted) {
  const CgroupCounters used = counters.read();
  Report report;
  report.kind = Report::Kind::accounted;
  report.values[0] = used.cpu_microseconds;
  report.values[1] = used.peak_memory_bytes;
  report.values[2] = used.oom_kills;
  report.values[3] = used.fork_failures;
  report.values[4] = counted;
  return report;
}

void run_cell(const CellPlan& plan) { Cell(plan).run(); }

}  // namespace fixpoint::sandbox::detail
