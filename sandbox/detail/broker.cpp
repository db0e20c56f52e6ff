#include "sandbox/detail/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

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
#include "sandbox/detail/namespaces.h"
#include "sandbox/detail/rootfs.h"

namespace fixpoint::sandbox::detail {

namespace {

constexpr WritableLimits kUsualWritable{64ULL << 20, 8192};
constexpr std::size_t kIdleNetworks = 4;

/// A run's init that waits for its job, or has it.
struct LiveCell {
  std::uint32_t template_id = 0;
  bool proc = false;
  unsigned slot = 0;
  UniqueFd pidfd;
  UniqueFd socket;
  UniqueFd report;  ///< valid once it has a job
  UniqueFd network;
  CgroupLeaf leaf;
};

class Broker {
 public:
  explicit Broker(int control) : control_(control) {}
  int run();

 private:
  void set_up();
  void wait_for_work();
  void take_message();
  void handle(HelloFrame frame);
  void handle(ProbesFrame&&) {}  // only ever sent by a broker
  void handle(TemplateFrame frame);
  void handle(PolicyFrame frame);
  void launch(const LaunchFrame& frame, Message& message);
  tl::expected<pid_t, Failure> take_cell(std::uint32_t template_id, bool proc);
  tl::expected<pid_t, Failure> make_cell(std::uint32_t template_id, bool proc);
  Failure hand_over(LiveCell& cell, const LaunchFrame& frame, Message& message);
  bool refill();
  void reap();
  void account(LiveCell& cell);
  void shut_down();
  static void send_report(int socket, const Report& report, std::span<const int> descriptors = {});
  static void send_failure(int socket, Failure failure);

  UniqueFd control_;
  UniqueFd signals_;
  Host host_;
  std::uint32_t ready_cells_ = 0;
  std::map<std::uint32_t, TemplateFrame> template_frames_;
  std::map<std::uint32_t, UniqueFd> templates_;
  std::vector<std::vector<std::uint64_t>> filters_;
  NetworkPool networks_;
  CgroupTree cgroups_;
  std::map<pid_t, LiveCell> cells_;
  std::vector<unsigned> free_slots_;
  unsigned next_slot_ = 0;
  std::optional<std::pair<std::uint32_t, bool>> last_template_;
  bool open_ = true;
};

void Broker::send_report(int socket, const Report& report, std::span<const int> descriptors) {
  (void)send_message(socket, std::as_bytes(std::span(&report, 1)), descriptors);
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
  host_ = Host::prepare(frame.without);
  cgroups_ = CgroupTree(host_.cgroup_wish);
  const ProbesFrame probes = host_.probes(cgroups_, networks_);
  if (!send_frame(control_.get(), encode(probes), {})) open_ = false;
}

void Broker::handle(TemplateFrame frame) { template_frames_[frame.id] = std::move(frame); }

void Broker::handle(PolicyFrame frame) {
  if (filters_.size() <= frame.id) filters_.resize(frame.id + 1);
  filters_[frame.id] = host_.seccomp ? std::move(frame.program) : std::vector<std::uint64_t>();
}

tl::expected<pid_t, Failure> Broker::make_cell(std::uint32_t template_id, bool proc) {
  UniqueFd& mounts = templates_[template_id];
  if (!mounts.valid()) {
    RootTemplate built = build_root(template_frames_[template_id].roots, host_.user_namespace);
    if (built.failure) return tl::unexpected(built.failure);
    mounts = std::move(built.mount_namespace);
  }
  LiveCell cell;
  cell.template_id = template_id;
  cell.proc = proc;
  if (host_.network_namespace) {
    cell.network = networks_.take();
    if (!cell.network.valid()) return tl::unexpected(Failure{Step::prepare_network, errno});
  }
  std::optional<CgroupLeaf> leaf = cgroups_.make_leaf();
  if (!leaf) return tl::unexpected(Failure{Step::prepare_cgroup, errno});
  cell.leaf = std::move(*leaf);
  std::optional<SocketPair> sockets = make_socket_pair();
  if (!sockets) return tl::unexpected(Failure{Step::clone_init, errno});
  if (free_slots_.empty()) free_slots_.push_back(next_slot_++);
  cell.slot = free_slots_.back();

  const std::vector<int> join = cell.leaf.join_descriptors();
  CellPlan plan;
  plan.socket = sockets->second.get();
  plan.mount_namespace = mounts.get();
  plan.network_namespace = cell.network.get();
  plan.cgroup_namespace = host_.cgroup_namespace;
  plan.mount_proc = proc;
  plan.join = join;
  plan.writable = kUsualWritable;
  plan.program = {host_.change_uid, host_.first_uid + 2 * cell.slot};
  plan.init = {host_.change_uid, host_.first_uid + 2 * cell.slot + 1};
  plan.nested_user_namespace = host_.user_namespace;
  plan.landlock_version = host_.landlock_version;
  plan.notify = host_.notify;
  plan.filters = &filters_;
  const Clone options{host_.clone_flags, cell.leaf.unified_directory()};
  const pid_t pid = clone_process(options, cell.pidfd);
  if (pid == 0) {
    sockets->first.reset();
    control_.reset();
    run_cell(plan);
  }
  if (pid < 0) return tl::unexpected(Failure{Step::clone_init, errno});
  free_slots_.pop_back();
  cell.socket = std::move(sockets->first);
  cells_.emplace(pid, std::move(cell));
  return pid;
}

tl::expected<pid_t, Failure> Broker::take_cell(std::uint32_t template_id, bool proc) {
  for (auto& [pid, cell] : cells_) {
    if (!cell.report.valid() && cell.template_id == template_id && cell.proc == proc) return pid;
  }
  return make_cell(template_id, proc);
}

Failure Broker::hand_over(LiveCell& cell, const LaunchFrame& frame, Message& message) {
  if (const Failure failure = cell.leaf.set_limits({frame.memory_bytes, frame.processes})) return failure;
  cell.report.reset(::dup(message.descriptors[3].get()));
  if (!cell.report.valid()) return {Step::send_to_init, errno};
  Report started;
  started.kind = Report::Kind::started;
  std::vector<int> handles{cell.pidfd.get()};
  if (cell.leaf.cpu_counter() >= 0) {
    started.values[0] = 1;
    handles.push_back(cell.leaf.cpu_counter());
  }
  if (cell.leaf.process_events() >= 0) {
    started.values[1] = 1;
    handles.push_back(cell.leaf.process_events());
  }
  send_report(cell.report.get(), started, handles);
  std::vector<int> descriptors;
  for (const UniqueFd& fd : message.descriptors) descriptors.push_back(fd.get());
  if (!send_frame(cell.socket.get(), message.bytes, descriptors)) return {Step::send_to_init, errno};
  return {};
}

void Broker::launch(const LaunchFrame& frame, Message& message) {
  if (message.descriptors.size() < 4) return;  // nobody to answer
  const int report = message.descriptors[3].get();
  const bool known = template_frames_.contains(frame.template_id) && frame.policy_id < filters_.size();
  if (!known || message.descriptors.size() != frame.descriptors()) return send_failure(report, {Step::parse_request, EINVAL});
  const bool proc = frame.has(LaunchFrame::mount_proc);
  const tl::expected<pid_t, Failure> pid = take_cell(frame.template_id, proc);
  if (!pid) return send_failure(report, pid.error());
  LiveCell& cell = cells_.at(*pid);
  last_template_ = {frame.template_id, proc};
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
  if (auto* job = std::get_if<LaunchFrame>(&*frame)) return launch(*job, *message);
  if (auto* hello = std::get_if<HelloFrame>(&*frame)) return handle(*hello);
  if (auto* root = std::get_if<TemplateFrame>(&*frame)) return handle(std::move(*root));
  if (auto* policy = std::get_if<PolicyFrame>(&*frame)) return handle(std::move(*policy));
}

/// One thing ahead of its use; true when something was done.
bool Broker::refill() {
  if (ready_cells_ == 0) return false;
  if (host_.network_namespace && networks_.refill(kIdleNetworks)) return true;
  if (!last_template_) return false;
  std::size_t ready = 0;
  for (const auto& [pid, cell] : cells_) {
    if (!cell.report.valid() && cell.template_id == last_template_->first && cell.proc == last_template_->second) ++ready;
  }
  return ready < ready_cells_ && make_cell(last_template_->first, last_template_->second).has_value();
}

void Broker::account(LiveCell& cell) {
  const CgroupCounters counters = cell.leaf.read();
  Report report;
  report.kind = Report::Kind::accounted;
  report.values[0] = counters.cpu_microseconds;
  report.values[1] = counters.peak_memory_bytes;
  report.values[2] = counters.oom_kills;
  report.values[3] = counters.fork_failures;
  const auto valid = [&report](bool usable, Report::Valid bit) {
    if (usable) report.values[4] |= bit;
  };
  valid(cgroups_.cpu().usable(), Report::cpu);
  valid(cgroups_.memory().usable(), Report::memory);
  valid(cgroups_.processes().usable(), Report::processes);
  send_report(cell.report.get(), report);
}

void Broker::reap() {
  signalfd_siginfo pending{};
  (void)!::read(signals_.get(), &pending, sizeof pending);
  while (true) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid <= 0) return;
    const auto found = cells_.find(pid);
    if (found == cells_.end()) continue;
    LiveCell& cell = found->second;
    // The namespace is empty: its init is reaped only after everything else in it.
    if (cell.report.valid()) account(cell);
    if (cell.network.valid()) networks_.give_back(std::move(cell.network));
    free_slots_.push_back(cell.slot);
    cells_.erase(found);
  }
}

void Broker::shut_down() {
  for (auto& [pid, cell] : cells_) ::kill(pid, SIGKILL);
  while (!cells_.empty()) {
    const pid_t pid = ::waitpid(-1, nullptr, 0);
    if (pid < 0 && errno == ECHILD) break;
    cells_.erase(pid);
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
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
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
  pollfd files[2] = {{control_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  int ready = ::poll(files, 2, 0);
  while (ready == 0 && refill()) ready = ::poll(files, 2, 0);
  if (ready == 0) ready = ::poll(files, 2, -1);
  if (ready <= 0) return;
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

int run_broker(int control) { return Broker(control).run(); }

}  // namespace fixpoint::sandbox::detail
