#include "sandbox/detail/broker.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "sandbox/detail/cell.h"
#include "sandbox/detail/cgroups.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/host.h"
#include "sandbox/detail/landlock.h"
#include "sandbox/detail/limits.h"
#include "sandbox/detail/namespaces.h"
#include "sandbox/detail/place.h"
#include "sandbox/detail/prepared_root.h"
#include "sandbox/detail/slots.h"
#include "sandbox/detail/zygotes.h"

namespace fixpoint::sandbox::detail {

namespace {

constexpr WritableLimits kUsualWritable{64ULL << 20, 8192};
constexpr std::size_t kIdleNamespaces = 4;
constexpr std::size_t kIdleLeaves = 8;
constexpr int kLargeBytes = 128 << 10;

/// What the next run's init stands ready for: the same as the last one's.
struct Expected {
  std::uint32_t template_id = 0;
  bool proc = false;
  std::optional<std::uint32_t> policy;  ///< none: a zygote's program

  bool operator==(const Expected&) const = default;
};

/// A run's init that waits for its job, or has it.
struct LiveCell {
  pid_t pid = 0;
  Expected stands_for;
  Slot slot;
  UniqueFd pidfd;
  UniqueFd socket;
  UniqueFd report;  ///< valid once it has a job
  JoinedNamespaces namespaces;
  CgroupLeaf leaf;
  UniqueFd listener;  ///< seccomp's, of a run with a denied call
  pid_t zygote = 0;   ///< whose fork the program is
  bool ending = false;
  bool answered = false;  ///< its monitor has all that it waits for
  bool waits_for_job = false;      ///< a worker kept warm: not a run that is under way, for all that is known here
  std::vector<std::string> given;  ///< the files that it begins with

  [[nodiscard]] bool at_work() const { return report.valid() && !ending && !answered; }
};

class Broker {
 public:
  Broker(int control, bool user_namespace, std::string failure)
      : control_(control), user_namespace_(user_namespace), user_namespace_error_(std::move(failure)) {}
  int run();

 private:
  void set_up();
  void wait_for_work();
  void take_message();
  void handle(HelloFrame frame);
  void handle(ProbesFrame&&) {}  // only ever sent by a broker
  void handle(TemplateFrame frame, std::span<const std::byte> whole);
  void handle(PolicyFrame frame);
  void launch(LaunchFrame frame, Message& message);
  tl::expected<pid_t, Failure> take_cell(const Expected& wanted);
  tl::expected<pid_t, Failure> make_cell(const Expected& wanted);
  Failure hand_over(LiveCell& cell, const LaunchFrame& frame, Message& message);
  Failure fork_program(LiveCell& cell, const LaunchFrame& frame, Message& message, int link);
  pid_t take_zygote(const LaunchFrame& frame);
  void pass_on(const std::optional<Zygotes::ProgramEnd>& end);
  void take_end(LiveCell& cell);
  std::optional<CgroupLeaf> take_leaf();
  bool refill();
  void reap();
  static void hear(LiveCell& cell);
  [[nodiscard]] Identity program_identity(const Slot& slot) const;
  void shut_down();
  static void send_report(int socket, const Report& report);
  static void send_failure(int socket, Failure failure);

  UniqueFd control_;
  const bool user_namespace_;
  const std::string user_namespace_error_;
  UniqueFd signals_;
  Host host_;
  std::uint32_t ready_cells_ = 0;
  std::map<std::uint32_t, PreparedRoot> roots_;
  std::vector<std::vector<std::uint64_t>> filters_;
  NamespacePool namespaces_;
  CgroupTree cgroups_;
  std::vector<CgroupLeaf> leaves_;  ///< empty, for the next runs; gone before the tree
  std::map<pid_t, LiveCell> cells_;
  Zygotes zygotes_;
  SlotPool slots_;
  std::optional<Expected> last_;
  std::uint64_t counted_ = 0;  ///< which counters the host has (Report::Valid)
  bool open_ = true;
};

void Broker::send_report(int socket, const Report& report) {
  (void)send_message(socket, std::as_bytes(std::span(&report, 1)), {});
}

void Broker::send_failure(int socket, Failure failure) {
  Report report;
  report.kind = Report::Kind::failed;
  report.values[0] = static_cast<std::uint64_t>(failure.step);
  report.values[1] = static_cast<std::uint64_t>(failure.error);
  send_report(socket, report);
  report = {};
  report.kind = Report::Kind::accounted;
  send_report(socket, report);
}

void Broker::handle(HelloFrame frame) {
  ready_cells_ = frame.ready_cells;
  injected_fault = {static_cast<Step>(frame.fault_step), static_cast<Fault>(frame.fault)};
  host_ = Host::prepare(frame.without, user_namespace_, user_namespace_error_);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  cgroups_ = CgroupTree(host_.cgroup_wish);
  const auto count = [this](const CgroupController& controller, Report::Valid bit) {
    if (controller.usable()) counted_ |= bit;
  };
  count(cgroups_.cpu(), Report::cpu);
  count(cgroups_.memory(), Report::memory);
  count(cgroups_.processes(), Report::processes);
  namespaces_ = NamespacePool(host_.joined_namespaces);
  const ProbesFrame probes = host_.probes(cgroups_, namespaces_);
  if (!send_frame(control_.get(), encode(probes), {})) open_ = false;
}

void Broker::handle(TemplateFrame frame, std::span<const std::byte> whole) {
  const std::uint32_t id = frame.id;
  roots_[id] = PreparedRoot(std::move(frame), whole);
}

void Broker::handle(PolicyFrame frame) {
  if (filters_.size() <= frame.id) filters_.resize(frame.id + 1);
  filters_[frame.id] = host_.seccomp ? std::move(frame.program) : std::vector<std::uint64_t>();
}

std::optional<CgroupLeaf> Broker::take_leaf() {
  if (leaves_.empty()) return cgroups_.make_leaf();
  CgroupLeaf leaf = std::move(leaves_.back());
  leaves_.pop_back();
  return leaf;
}

tl::expected<pid_t, Failure> Broker::make_cell(const Expected& wanted) {
  PreparedRoot& root = roots_[wanted.template_id];
  if (fault_at(Step::prepare_template)) return tl::unexpected(Failure{Step::prepare_template, errno});
  if (const Failure failure = root.make(host_.user_namespace)) return tl::unexpected(failure);
  LiveCell cell;
  cell.stands_for = wanted;
  std::optional<JoinedNamespaces> namespaces = fault_at(Step::prepare_namespaces) ? std::nullopt : namespaces_.take();
  if (!namespaces) return tl::unexpected(Failure{Step::prepare_namespaces, errno});
  cell.namespaces = std::move(*namespaces);
  std::optional<CgroupLeaf> leaf = fault_at(Step::prepare_cgroup) ? std::nullopt : take_leaf();
  if (!leaf) return tl::unexpected(Failure{Step::prepare_cgroup, errno});
  cell.leaf = std::move(*leaf);
  std::optional<SocketPair> sockets = fault_at(Step::clone_init) ? std::nullopt : make_socket_pair();
  if (!sockets) return tl::unexpected(Failure{Step::clone_init, errno});
  // A run with a /proc of its own makes its own place, which ends with it.
  cell.slot = slots_.take(wanted.proc ? std::nullopt : std::optional(wanted.template_id));
  const std::vector<int> join = cell.leaf.join_descriptors();
  CellPlan plan;
  plan.socket = sockets->second.get();
  plan.template_mounts = root.mounts();
  plan.place[0] = cell.slot.place.mounts();
  plan.place[1] = cell.slot.place.files();
  plan.network_namespace = cell.namespaces.network.get();
  plan.ipc_namespace = cell.namespaces.ipc.get();
  plan.cgroup_namespace = host_.cgroup_namespace;
  plan.mount_proc = wanted.proc;
  plan.join = join;
  plan.writable = kUsualWritable;
  plan.program = program_identity(cell.slot);
  plan.init = {host_.change_uid, plan.program.id + 1, host_.capabilities_bounded};
  plan.nested_user_namespace = host_.user_namespace;
  plan.landlock_version = host_.landlock_version;
  plan.notify = host_.notify;
  plan.filters = &filters_;
  plan.policy = wanted.policy;
  plan.counters = &cell.leaf.counters();
  plan.counted = counted_;
  const Clone options{host_.clone_flags, cell.leaf.unified_directory()};
  const pid_t pid = clone_process(options, cell.pidfd);
  if (pid == 0) {
    sockets->first.reset();
    control_.reset();
    run_cell(plan);
  }
  if (pid < 0) {
    const int error = errno;
    slots_.give_back(std::move(cell.slot));
    return tl::unexpected(Failure{Step::clone_init, error});
  }
  cell.pid = pid;
  cell.slot.place = {};  // the init's, until it gives it back
  cell.socket = std::move(sockets->first);
  cells_.emplace(pid, std::move(cell));
  return pid;
}

Identity Broker::program_identity(const Slot& slot) const {
  return {host_.change_uid, host_.first_uid + 2 * slot.number, host_.capabilities_bounded && !host_.user_namespace};
}

tl::expected<pid_t, Failure> Broker::take_cell(const Expected& wanted) {
  pid_t close = 0;
  for (const auto& [pid, cell] : cells_) {
    if (cell.report.valid()) continue;
    if (cell.stands_for == wanted) return pid;
    if (cell.stands_for.template_id == wanted.template_id && cell.stands_for.proc == wanted.proc) close = pid;
  }
  return close != 0 ? tl::expected<pid_t, Failure>(close) : make_cell(wanted);
}

Failure Broker::hand_over(LiveCell& cell, const LaunchFrame& frame, Message& message) {
  cell.report.reset(::dup(message.descriptors[3].get()));
  if (!cell.report.valid()) return {Step::send_to_init, errno};
  if (fault_at(Step::set_cgroup_limits)) return {Step::set_cgroup_limits, errno};
  if (const Failure failure = cell.leaf.set_limits({frame.memory_bytes, frame.processes})) return failure;
  if (fault_at(Step::send_to_init)) return {Step::send_to_init, errno};
  std::vector<int> descriptors;
  for (const UniqueFd& fd : message.descriptors) descriptors.push_back(fd.get());
  if (cell.zygote != 0) {
    std::optional<SocketPair> link = make_socket_pair();
    if (!link) return {Step::send_to_init, errno};
    descriptors.push_back(link->first.get());
    if (!send_frame(cell.socket.get(), message.bytes, descriptors)) return {Step::send_to_init, errno};
    return fork_program(cell, frame, message, link->second.get());
  }
  if (!send_frame(cell.socket.get(), message.bytes, descriptors)) return {Step::send_to_init, errno};
  return {};
}

Failure Broker::fork_program(LiveCell& cell, const LaunchFrame& frame, Message& message, int link) {
  ForkFrame fork;
  fork.fault_step = static_cast<std::uint32_t>(injected_fault.step);
  fork.fault = static_cast<std::uint32_t>(injected_fault.fault);
  fork.init = static_cast<std::uint32_t>(cell.pid);
  fork.change_uid = host_.change_uid ? 1 : 0;
  fork.uid = program_identity(cell.slot).id;
  fork.nested_user_namespace = host_.user_namespace ? 1 : 0;
  fork.namespaces = static_cast<std::uint32_t>(CLONE_NEWNS | (host_.clone_flags & ~std::uint64_t{CLONE_NEWPID}) | host_.joined_namespaces |
                                               (host_.cgroup_namespace ? CLONE_NEWCGROUP : 0));
  fork.landlock_version = static_cast<std::uint32_t>(host_.landlock_version);
  fork.notify = host_.notify ? 1 : 0;
  fork.judge = frame.has(LaunchFrame::judge) ? 1 : 0;
  fork.wait_for_job = frame.has(LaunchFrame::wait_for_job) ? 1 : 0;
  fork.processes = process_rlimit(frame.processes, (counted_ & Report::processes) != 0);
  fork.cpu_milliseconds = frame.cpu_milliseconds;
  fork.file_bytes = frame.file_bytes;
  fork.address_space_bytes = frame.has(LaunchFrame::limit_address_space) ? frame.memory_bytes : 0;
  fork.arguments = frame.arguments;
  fork.environment = frame.environment;
  std::vector<int> descriptors{cell.pidfd.get(), link};
  for (std::size_t i = 0; i < message.descriptors.size(); ++i) {
    if (i != 3) descriptors.push_back(message.descriptors[i].get());
  }
  for (const int procs : cell.leaf.join_later_descriptors()) descriptors.push_back(procs);
  if (!zygotes_.fork(cell.zygote, cell.pid, fork, descriptors)) return {Step::fork_zygote, errno};
  return {};
}

/// 0 where the template has none, or where it does not live.
pid_t Broker::take_zygote(const LaunchFrame& frame) {
  if (frame.has(LaunchFrame::mount_proc)) return 0;
  const PolicyFrame filter{frame.policy_id, filters_[frame.policy_id]};
  const PreparedRoot& root = roots_[frame.template_id];
  return zygotes_.take(root.description(), root.mounts(), filter, host_.user_namespace);
}

/// A zygote's child is not its init's to wait for.
void Broker::pass_on(const std::optional<Zygotes::ProgramEnd>& end) {
  const auto cell = end ? cells_.find(end->init) : cells_.end();
  if (cell != cells_.end()) send_report(cell->second.socket.get(), end->report);
}

/// The monitor wants the run to end, or is not there any more to hear how it does.
void Broker::take_end(LiveCell& cell) {
  const std::optional<Message> message = receive_message(cell.report.get(), false);
  if (!message && errno == EAGAIN) return;
  hear(cell);
  if (cell.answered) return;
  cell.ending = true;
  cell.leaf.kill_first();
  ::kill(cell.pid, SIGKILL);
}

void Broker::launch(LaunchFrame frame, Message& message) {
  if (message.descriptors.size() < 4) return;  // nobody to answer
  const int report = message.descriptors[3].get();
  const bool known = roots_.contains(frame.template_id) && frame.policy_id < filters_.size();
  if (!known || message.descriptors.size() != frame.descriptors()) return send_failure(report, {Step::parse_request, EINVAL});
  Expected wanted{frame.template_id, frame.has(LaunchFrame::mount_proc), std::nullopt};
  if (!frame.has(LaunchFrame::fork_zygote)) wanted.policy = frame.policy_id;
  const tl::expected<pid_t, Failure> pid = take_cell(wanted);
  if (!pid) return send_failure(report, pid.error());
  LiveCell& cell = cells_.at(*pid);
  if (frame.has(LaunchFrame::fork_zygote)) {
    cell.zygote = take_zygote(frame);
    if (cell.zygote == 0 && frame.has(LaunchFrame::wait_for_job)) return send_failure(report, {Step::fork_zygote, ECHILD});
    if (cell.zygote == 0) {
      frame.flags &= ~LaunchFrame::fork_zygote;
      message.bytes = encode(frame);
    }
  }
  last_ = wanted;
  cell.waits_for_job = frame.has(LaunchFrame::wait_for_job);
  for (const FrameFile& file : frame.files) cell.given.push_back(file.path);
  if (const Failure failure = hand_over(cell, frame, message)) {
    send_failure(report, failure);
    cell.socket.reset();  // the init sees end of file and leaves
  }
}

void Broker::take_message() {
  std::optional<Message> message = receive_message(control_.get(), false);
  if (!message) {
    if (errno != EAGAIN && errno != EMSGSIZE) open_ = false;
    return;
  }
  if (!unfold_frame(*message)) return;
  auto frame = parse_frame(message->bytes);
  if (!frame) {
    if (message->descriptors.size() >= 4) send_failure(message->descriptors[3].get(), {Step::parse_request, EBADMSG});
    return;
  }
  if (auto* job = std::get_if<LaunchFrame>(&*frame)) return launch(std::move(*job), *message);
  if (auto* hello = std::get_if<HelloFrame>(&*frame)) return handle(*hello);
  if (auto* root = std::get_if<TemplateFrame>(&*frame)) return handle(std::move(*root), message->bytes);
  if (auto* policy = std::get_if<PolicyFrame>(&*frame)) return handle(std::move(*policy));
}

/// One thing ahead of its use; true when something was done.
bool Broker::refill() {
  if (ready_cells_ == 0) return false;
  if (namespaces_.refill(kIdleNamespaces)) return true;
  if (!last_) return false;
  std::size_t ready = 0, running = 0;
  for (const auto& [pid, cell] : cells_) {
    if (cell.report.valid()) running += cell.waits_for_job ? 0 : 1;
    else if (cell.stands_for.template_id == last_->template_id && cell.stands_for.proc == last_->proc) ++ready;
  }
  // Runs that are under way would pay for it. But each may be followed by another as soon as it ends.
  const std::size_t wanted = running == 0 ? ready_cells_ : std::min<std::size_t>(running, ready_cells_);
  return ready < wanted && make_cell(*last_).has_value();
}

/// What a cell's init has said.
void Broker::hear(LiveCell& cell) {
  while (true) {
    std::optional<Message> message = receive_message(cell.socket.get(), false);
    if (!message && errno == EMSGSIZE) continue;  // there was no descriptor left for what it brought
    if (!message || message->bytes.empty()) return;
    auto& handles = message->descriptors;
    switch (static_cast<Word>(message->bytes[0])) {
      case Word::place:
        if (handles.size() == Place::kHandles) cell.slot.place = Place(std::move(handles[0]), std::move(handles[1]));
        cell.slot.template_id = cell.stands_for.template_id;
        break;
      case Word::listener:
        if (!handles.empty()) cell.listener = std::move(handles[0]);
        break;
      case Word::answered: cell.answered = true; break;
    }
  }
}

void Broker::reap() {
  signalfd_siginfo pending{};
  (void)!::read(signals_.get(), &pending, sizeof pending);
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    if (zygotes_.contains(pid)) {
      for (const pid_t init : zygotes_.ended(pid)) {
        if (cells_.contains(init)) ::kill(init, SIGKILL);
      }
      continue;
    }
    const auto found = cells_.find(pid);
    if (found == cells_.end()) {
      pass_on(zygotes_.program_ended(pid, status, usage));
      continue;
    }
    LiveCell& cell = found->second;
    hear(cell);
    // The namespace is empty: its init is reaped only after everything else in it. One that was killed may have answered to us alone.
    if (cell.report.valid() && (!cell.answered || WIFSIGNALED(status))) send_report(cell.report.get(), accounted(cell.leaf.counters(), counted_));
    // One that was told to end may have ended by itself just before: its leaf has been killed all the same.
    if (!cell.ending && !WIFSIGNALED(status) && leaves_.size() < kIdleLeaves && cell.leaf.recycle()) leaves_.push_back(std::move(cell.leaf));
    else cell.leaf.kill();  // not before a leaf is used again: the kernel then kills what is born in it
    namespaces_.give_back(std::move(cell.namespaces));
    const bool kept = cell.answered && !cell.ending && !WIFSIGNALED(status) && cell.slot.place.valid() &&
                      cell.slot.place.renew(program_identity(cell.slot), cell.given);
    if (!kept) cell.slot.place = {};
    slots_.give_back(std::move(cell.slot));
    cells_.erase(found);
  }
}

void Broker::shut_down() {
  for (auto& [pid, cell] : cells_) ::kill(pid, SIGKILL);
  zygotes_.kill_all();
  // Until there is no child left: what a zygote was trying out is ours by then, and has heard that it is gone.
  while (true) {
    const pid_t pid = ::waitpid(-1, nullptr, 0);
    if (pid < 0 && errno == ECHILD) break;
    cells_.erase(pid);
    zygotes_.forget(pid);
  }
}

void Broker::set_up() {
  // Programs get descriptors 0 to 4; nothing of ours may ever stand there.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  control_.reset(::fcntl(control_.get(), F_DUPFD_CLOEXEC, 16));
  for (int fd = 0; fd < 16; ++fd) {
    if (fd != null.get()) ::dup3(null.get(), fd, O_CLOEXEC);
  }
  (void)const_cast<UniqueFd&>(null).release();
  ::close_range(static_cast<unsigned>(control_.get()) + 1, ~0U, 0);
  ::prctl(PR_SET_NAME, "fixpoint-broker");
  // A zygote's programs that outlive it come to us: the machine's init may take seconds to reap them, and until then their cells'
  // inits can't end.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // Large blocks go back to the kernel when they are freed; by itself the allocator would keep such sizes from then on.
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signals_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
}

void Broker::wait_for_work() {
  std::vector<pollfd> files{{control_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  const auto zygotes = zygotes_.sockets();
  for (const auto& [pid, socket] : zygotes) files.push_back({socket, POLLIN, 0});
  std::vector<pid_t> at_work;
  for (const auto& [pid, cell] : cells_) {
    if (!cell.at_work()) continue;
    at_work.push_back(pid);
    files.push_back({cell.report.get(), POLLIN, 0});
  }
  int ready = ::poll(files.data(), files.size(), 0);
  while (ready == 0 && refill()) ready = ::poll(files.data(), files.size(), 0);
  if (ready == 0) ready = ::poll(files.data(), files.size(), -1);
  if (ready <= 0) return;
  for (std::size_t i = 0; i < at_work.size(); ++i) {
    if (files[2 + zygotes.size() + i].revents != 0) take_end(cells_.at(at_work[i]));
  }
  for (std::size_t i = 0; i < zygotes.size(); ++i) {
    if (files[2 + i].revents != 0) pass_on(zygotes_.take_message(zygotes[i].first));
  }
  if (files[1].revents != 0) reap();
  if (files[0].revents != 0) take_message();
}

int Broker::run() {
  set_up();
  while (open_) wait_for_work();
  shut_down();
  return 0;
}

}  // namespace

int run_broker(int control, bool user_namespace, const std::string& failure) {
  return Broker(control, user_namespace, failure).run();
}

}  // namespace fixpoint::sandbox::detail
