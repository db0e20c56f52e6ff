#include "sandbox/detail/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "sandbox/detail/cgroups.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/quiet_write.h"
#include "sandbox/detail/seccomp_filter.h"
#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Set-up that takes longer than this, or an end that does, is a fault of the sandbox.
constexpr auto kSetupTime = std::chrono::seconds(30);
constexpr auto kKillTime = std::chrono::seconds(30);

/// v2 announces a refused fork, v1 has to be asked: often at first, and less so of a program that has run for long.
constexpr auto kProcessCheck = milliseconds(10);
constexpr auto kRareProcessCheck = milliseconds(100);
constexpr int kChecksOfALifetime = 20;

/// Asked once: the answer comes from a file of the kernel's.
unsigned processors() {
  static const unsigned count = std::max(1U, std::thread::hardware_concurrency());
  return count;
}

enum class KillReason { none, cancelled, output, processes, cpu, wall, late };

/// Reads what is there, keeps at most `cap` bytes.
class Capture {
 public:
  Capture(UniqueFd fd, Output& output, std::uint64_t cap) : fd_(std::move(fd)), output_(output), cap_(cap) {
    ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  }

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// True when the cap has been passed.
  bool take() {
    char buffer[65536];
    while (fd_.valid()) {
      const ssize_t got = ::read(fd_.get(), buffer, sizeof buffer);
      if (got > 0) {
        const std::size_t room = static_cast<std::size_t>(cap_ - output_.bytes.size());
        output_.bytes.append(buffer, std::min(room, static_cast<std::size_t>(got)));
        if (static_cast<std::size_t>(got) > room) output_.truncated = true;
        if (output_.truncated) break;  // look at the other descriptors in between
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got == 0 || errno != EAGAIN) fd_.reset();
      break;
    }
    return output_.truncated;
  }

 private:
  UniqueFd fd_;
  Output& output_;
  std::uint64_t cap_;
};

class Monitor {
 public:
  Monitor(RunEnds ends, const MonitorOptions& options, std::stop_token stop)
      : options_(options),
        report_(std::move(ends.report)),
        input_(std::move(ends.input)),
        output_(std::move(ends.output), result_.output, options.limits.output_bytes),
        errors_(std::move(ends.errors), result_.errors, options.limits.output_bytes),
        stopped_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        on_stop_(std::move(stop), [this] { (void)!::eventfd_write(stopped_.get(), 1); }) {
    ::fcntl(input_.get(), F_SETFL, O_NONBLOCK);
  }

  RunResult run();

 private:
  void step();
  [[nodiscard]] int wait_time(Clock::time_point now) const;
  void feed();
  void read_reports();
  void take_report(const Report& report, Message& message);
  void check_limits(Clock::time_point now);
  void kill(KillReason reason);
  [[nodiscard]] microseconds cpu_used() const;
  [[nodiscard]] long refused_forks() const;
  void decide();
  [[nodiscard]] Outcome ended_outcome() const;

  const MonitorOptions& options_;
  RunResult result_;
  UniqueFd report_;
  UniqueFd input_;
  std::size_t fed_ = 0;
  Capture output_;
  Capture errors_;
  UniqueFd stopped_;
  UniqueFd init_;
  UniqueFd cpu_counter_;
  UniqueFd process_events_;
  microseconds cpu_base_{0};
  std::optional<Failure> failure_;
  std::optional<SyscallDenied> denied_;
  std::optional<Report> ended_;
  std::optional<Report> accounted_;
  bool done_ = false;
  bool heard_ = false;
  KillReason reason_ = KillReason::none;
  Clock::time_point created_ = Clock::now();
  std::optional<Clock::time_point> started_;
  std::optional<Clock::time_point> ended_at_;
  std::optional<Clock::time_point> killed_at_;
  Clock::time_point next_cpu_check_ = Clock::time_point::max();
  Clock::time_point next_process_check_ = Clock::time_point::min();
  std::stop_callback<std::function<void()>> on_stop_;
};

void Monitor::kill(KillReason reason) {
  if (reason_ == KillReason::none) reason_ = reason;
  // What a program writes may be here before the word that it runs, which comes within a moment, with its box and what it began with.
  if (killed_at_ || (reason == KillReason::output && !started_)) return;
  killed_at_ = Clock::now();
  // The broker can do more: all processes at once, and with the processors' attention; also a run that is not under way yet.
  Report end;
  end.kind = Report::Kind::end;
  (void)send_message(report_.get(), std::as_bytes(std::span(&end, 1)), {});
  if (init_.valid()) (void)::syscall(SYS_pidfd_send_signal, init_.get(), SIGKILL, nullptr, 0);
}

void Monitor::feed() {
  while (input_.valid()) {
    if (fed_ == options_.input.size()) return input_.reset();
    const ssize_t written = write_quietly(input_.get(), options_.input.data() + fed_, options_.input.size() - fed_);
    if (written > 0) fed_ += static_cast<std::size_t>(written);
    else if (written < 0 && errno == EINTR) continue;
    else if (written < 0 && errno == EAGAIN) return;
    else return input_.reset();  // the program closed its stdin
  }
}

void Monitor::take_report(const Report& report, Message& message) {
  heard_ = true;
  const auto values = report.values;
  switch (report.kind) {
    case Report::Kind::running: {
      auto& handles = message.descriptors;
      std::size_t next = 0;
      if (next < handles.size()) init_ = std::move(handles[next++]);
      if (values[0] != 0 && next < handles.size()) cpu_counter_ = std::move(handles[next++]);
      if (values[1] != 0 && next < handles.size()) process_events_ = std::move(handles[next++]);
      cpu_base_ = options_.started_ahead ? cpu_used() : microseconds(values[2]);
      if (next < handles.size()) result_.box = std::move(handles[next]);
      (void)refused_forks();  // from here on poll waits for a change
      started_ = options_.started_ahead ? Clock::now() : Clock::time_point(std::chrono::nanoseconds(values[3]));
      next_cpu_check_ = *started_ + options_.limits.cpu / processors();
      if (reason_ == KillReason::output) kill(reason_);
      break;
    }
    case Report::Kind::failed:
      if (!failure_) failure_ = Failure{static_cast<Step>(values[0]), static_cast<int>(values[1])};
      break;
    case Report::Kind::denied: {
      const auto architecture = static_cast<std::uint32_t>(values[0]);
      const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(values[1]));
      denied_ = SyscallDenied{syscall_name(architecture, static_cast<std::uint32_t>(number)), number, {}};
      std::copy(values + 2, values + 8, denied_->arguments.begin());
      break;
    }
    case Report::Kind::ended:
      ended_ = report;
      ended_at_ = Clock::now();
      break;
    case Report::Kind::accounted:
      accounted_ = report;
      done_ = true;
      break;
    case Report::Kind::end:
    case Report::Kind::ready:
    case Report::Kind::memory:
    case Report::Kind::forked:
    case Report::Kind::child_ended:  // between zygote, broker and init
    case Report::Kind::count: break;
  }
}

void Monitor::read_reports() {
  while (!done_) {
    std::optional<Message> message = receive_message(report_.get(), false);
    if (!message) {
      if (errno != EAGAIN) done_ = true;  // broker and init are gone
      return;
    }
    // An init says all that it has to say at once.
    for (std::span<const std::byte> rest = message->bytes; rest.size() >= sizeof(Report); rest = rest.subspan(sizeof(Report))) {
      if (const auto report = parse_report(rest.first(sizeof(Report)))) take_report(*report, *message);
    }
  }
}

microseconds Monitor::cpu_used() const {
  if (!cpu_counter_.valid()) return microseconds(0);
  char text[1024];
  const ssize_t got = ::pread(cpu_counter_.get(), text, sizeof text, 0);
  return microseconds(got <= 0 ? 0 : parse_cpu_counter({text, static_cast<std::size_t>(got)})) - cpu_base_;
}

/// "max 3"
long Monitor::refused_forks() const {
  char text[256] = {};
  if (!process_events_.valid() || ::pread(process_events_.get(), text, sizeof text - 1, 0) < 5) return 0;
  return std::strtol(text + 4, nullptr, 10);
}

void Monitor::check_limits(Clock::time_point now) {
  if (killed_at_) return;
  if (!started_) {
    if (now - created_ > kSetupTime) kill(KillReason::late);
    return;
  }
  if (now >= *started_ + options_.limits.wall) return kill(KillReason::wall);
  if (process_events_.valid() && now >= next_process_check_) {
    if (refused_forks() > 0) return kill(KillReason::processes);
    next_process_check_ = now + std::clamp<Clock::duration>((now - *started_) / kChecksOfALifetime, kProcessCheck, kRareProcessCheck);
  }
  if (now < next_cpu_check_) return;
  const microseconds left = options_.limits.cpu - cpu_used();
  if (left.count() <= 0) return kill(KillReason::cpu);
  // All processors together cannot use up what is left in less than this.
  next_cpu_check_ = now + std::max<microseconds>(left / processors(), milliseconds(2));
}

int Monitor::wait_time(Clock::time_point now) const {
  Clock::time_point next = created_ + kSetupTime;
  if (killed_at_) next = *killed_at_ + kKillTime;
  else if (started_) {
    next = *started_ + options_.limits.wall;
    if (cpu_counter_.valid()) next = std::min(next, next_cpu_check_);
    if (process_events_.valid()) next = std::min(next, next_process_check_);
  }
  const auto left = std::chrono::ceil<milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<long>(left, 0, INT_MAX));
}

void Monitor::step() {
  pollfd files[6];
  nfds_t count = 0;
  const auto add = [&](int fd, short events) {
    files[count] = {fd, events, 0};
    return count++;
  };
  // poll ignores negative descriptors.
  const auto report = add(report_.get(), POLLIN);
  const auto stopped = add(killed_at_ ? -1 : stopped_.get(), POLLIN);
  const auto output = add(output_.fd(), POLLIN);
  const auto errors = add(errors_.fd(), POLLIN);
  const auto input = add(input_.get(), POLLOUT);
  const auto events = add(killed_at_ ? -1 : process_events_.get(), POLLPRI);
  const int ready = ::poll(files, count, wait_time(Clock::now()));
  if (ready > 0) {
    if (files[stopped].revents != 0) kill(KillReason::cancelled);
    bool over = false;
    if (files[output].revents != 0) over = output_.take() || over;
    if (files[errors].revents != 0) over = errors_.take() || over;
    if (over && options_.overflow == Overflow::kill) kill(KillReason::output);
    if (files[input].revents != 0) feed();
    if ((files[events].revents & POLLPRI) != 0 && refused_forks() > 0) kill(KillReason::processes);
    if (files[report].revents != 0) read_reports();
  }
  // Of a run that is over the counters may be another's already.
  if (!done_) check_limits(Clock::now());
  if (killed_at_ && Clock::now() > *killed_at_ + kKillTime) done_ = true;
}

Outcome Monitor::ended_outcome() const {
  const int status = static_cast<int>(ended_->values[0]);
  const bool full = ended_->values[4] != 0;
  const auto says = [this](std::string_view words) { return result_.errors.bytes.find(words) != std::string::npos; };
  // Without cgroups the limits show as calls that fail, and only the program can say so; it can lie, but not itself to a pass.
  const bool memory =
      options_.address_space_limited &&
      (result_.usage.peak_memory_bytes >= options_.limits.memory_bytes / 10 * 9 || says("MemoryError") ||
       says("bad_alloc") || says("Cannot allocate memory"));
  const bool forks = options_.forks_uncounted && (says("Resource temporarily unavailable") || says("can't start new thread"));
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    if (number == SIGXCPU || (number == SIGKILL && result_.usage.cpu >= options_.limits.cpu)) return CpuLimit{};
    if (number == SIGXFSZ) return FileLimit{};
    if (memory) return MemoryLimit{};
    if (forks) return ProcessLimit{};
    if (full) return FileLimit{};
    if (number == SIGSYS) return SyscallDenied{"unknown", -1, {}};
    return Signalled{number};
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return Ok{};
  if (memory) return MemoryLimit{};
  if (forks) return ProcessLimit{};
  if (full) return FileLimit{};
  return ExitNonzero{code};
}

void Monitor::decide() {
  Usage& usage = result_.usage;
  if (started_) usage.wall = std::chrono::duration_cast<microseconds>(ended_at_.value_or(Clock::now()) - *started_);
  result_.unheard = !heard_ && reason_ == KillReason::none;
  const std::uint64_t valid = accounted_ ? accounted_->values[4] : 0;
  if (ended_) {
    usage.cpu = microseconds(ended_->values[1] + ended_->values[2]);
    usage.peak_memory_bytes = ended_->values[3];
    usage.files_full = ended_->values[4] != 0;
  }
  // Without a start it is not known what the counter began with.
  if ((valid & Report::cpu) != 0) usage.cpu = started_ ? std::max(microseconds(accounted_->values[0]) - cpu_base_, microseconds(0)) : microseconds(0);
  if ((valid & Report::memory) != 0) {
    usage.peak_memory_bytes = accounted_->values[1];
    usage.oom_kills = static_cast<std::uint32_t>(accounted_->values[2]);
  }
  if ((valid & Report::processes) != 0) usage.fork_failures = static_cast<std::uint32_t>(accounted_->values[3]);

  if (reason_ == KillReason::cancelled) result_.outcome = Cancelled{};
  else if (failure_) result_.outcome = SetupError{std::string(name(failure_->step)), std::strerror(failure_->error)};
  else if (!accounted_) result_.outcome = InternalError{"the broker or the run's init was killed"};
  else if (reason_ == KillReason::late) result_.outcome = InternalError{"the program was not started in time"};
  else if (denied_) result_.outcome = *denied_;
  else if (usage.oom_kills > 0) result_.outcome = MemoryLimit{};
  else if (reason_ == KillReason::output) result_.outcome = OutputLimit{};
  else if (reason_ == KillReason::processes || usage.fork_failures > 0) result_.outcome = ProcessLimit{};
  else if (reason_ == KillReason::cpu || usage.cpu > options_.limits.cpu) result_.outcome = CpuLimit{};
  else if (reason_ == KillReason::wall || usage.wall > options_.limits.wall) result_.outcome = WallLimit{};
  else if (ended_) result_.outcome = ended_outcome();
  else result_.outcome = InternalError{"the run's init was killed"};
}

RunResult Monitor::run() {
  feed();
  while (!done_) step();
  // Nothing of the program is alive: what it wrote is in the pipes.
  bool over = output_.take();
  over = errors_.take() || over;
  if (over && options_.overflow == Overflow::kill && reason_ == KillReason::none) reason_ = KillReason::output;
  decide();
  return std::move(result_);
}

}  // namespace

RunResult watch_run(RunEnds ends, const MonitorOptions& options, std::stop_token stop) {
  return Monitor(std::move(ends), options, std::move(stop)).run();
}

}  // namespace fixpoint::sandbox::detail
