#include "sandbox/detail/zygotes.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "sandbox/detail/channel.h"
#include "sandbox/detail/namespaces.h"
#include "sandbox/detail/privileges.h"

namespace fixpoint::sandbox::detail {

namespace {

/// A zygote is replaced after this many programs.
constexpr std::uint32_t kForksPerZygote = 1000;
constexpr int kMaxFailures = 3;

}  // namespace

pid_t Zygotes::take(const TemplateFrame& root, int mounts, const PolicyFrame& filter, bool user_namespace) {
  if (root.zygote.empty() || failures_[root.id] >= kMaxFailures) return 0;
  for (const auto& [pid, zygote] : zygotes_) {
    if (zygote.template_id == root.id && !zygote.retired) return pid;
  }
  return start(root, mounts, filter, user_namespace);
}

pid_t Zygotes::start(const TemplateFrame& root, int mounts, const PolicyFrame& filter, bool user_namespace) {
  std::optional<SocketPair> sockets = make_socket_pair();
  if (!sockets) return 0;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::setns(mounts, CLONE_NEWNS) != 0) ::_exit(125);
    ::dup2(sockets->second.get(), 3);
    ::close_range(4, ~0U, 0);
    for (int fd = 0; fd < 3; ++fd) ::fcntl(fd, F_SETFD, 0);
    std::vector<char*> arguments, environment;
    for (const std::string& word : root.zygote) arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& word : root.environment) environment.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    ::setsid();
    if (user_namespace && !keep_capabilities()) ::_exit(124);
    ::execve(arguments[0], arguments.data(), environment.data());
    ::_exit(126);
  }
  if (pid < 0) return 0;
  if (!filter.program.empty() && !send_frame(sockets->first.get(), encode(filter), {})) ::kill(pid, SIGKILL);
  zygotes_.emplace(pid, Zygote{root.id, std::move(sockets->first), 0, {}, false});
  return pid;
}

bool Zygotes::fork(pid_t pid, pid_t init, const ForkFrame& frame, std::span<const int> descriptors) {
  Zygote& zygote = zygotes_.at(pid);
  if (!send_frame(zygote.socket.get(), encode(frame), descriptors)) return false;
  zygote.waiting.push_back(init);
  zygote.retired = ++zygote.forks >= kForksPerZygote;
  return true;
}

std::vector<std::pair<pid_t, int>> Zygotes::sockets() const {
  std::vector<std::pair<pid_t, int>> all;
  for (const auto& [pid, zygote] : zygotes_) all.emplace_back(pid, zygote.socket.get());
  return all;
}

/// Its root has no /proc. Without descriptors the message says that there is nothing to see.
void Zygotes::show_memory(pid_t pid, const Zygote& zygote, pid_t trial) {
  const auto open = [](pid_t process, const char* file) {
    return UniqueFd(::open(("/proc/" + std::to_string(process) + file).c_str(), O_RDONLY | O_CLOEXEC));
  };
  if (trial == 0) return;
  const UniqueFd maps = open(pid, "/maps"), pages = open(trial, "/pagemap");
  Report report;
  report.kind = Report::Kind::memory;
  const int descriptors[] = {maps.get(), pages.get()};
  const std::size_t count = maps.valid() && pages.valid() ? 2 : 0;
  (void)send_message(zygote.socket.get(), std::as_bytes(std::span(&report, 1)), std::span(descriptors, count));
}

std::optional<Zygotes::ProgramEnd> Zygotes::take_message(pid_t pid) {
  Zygote& zygote = zygotes_.at(pid);
  const std::optional<Message> message = receive_message(zygote.socket.get(), false);
  if (!message) {
    if (errno != EAGAIN) ::kill(pid, SIGKILL);
    return std::nullopt;
  }
  const auto report = parse_report(message->bytes);
  if (!report) return std::nullopt;
  if (report->kind == Report::Kind::ready) show_memory(pid, zygote, static_cast<pid_t>(report->values[0]));
  if (report->kind != Report::Kind::forked) return std::nullopt;
  const auto init = static_cast<pid_t>(report->values[0]);
  const auto program = static_cast<pid_t>(report->values[1]);
  std::erase(zygote.waiting, init);
  if (zygote.retired && zygote.waiting.empty()) ::kill(pid, SIGKILL);
  std::optional<ProgramEnd> end;
  if (const auto early = early_.extract(program)) end = ProgramEnd{init, early.mapped()};
  else if (program != 0) programs_[program] = init;
  if (!somebody_waits()) early_.clear();
  return end;
}

bool Zygotes::somebody_waits() const {
  return std::any_of(zygotes_.begin(), zygotes_.end(), [](const auto& entry) { return !entry.second.waiting.empty(); });
}

std::vector<pid_t> Zygotes::ended(pid_t pid) {
  Zygote& zygote = zygotes_.at(pid);
  failures_[zygote.template_id] = zygote.retired ? 0 : failures_[zygote.template_id] + 1;
  std::vector<pid_t> waiting = std::move(zygote.waiting);
  zygotes_.erase(pid);
  if (!somebody_waits()) early_.clear();
  return waiting;
}

std::optional<Zygotes::ProgramEnd> Zygotes::program_ended(pid_t pid, int status, const rusage& usage) {
  Report report;
  report.kind = Report::Kind::child_ended;
  report.values[0] = static_cast<std::uint64_t>(pid);
  report.values[1] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(status));
  report.values[2] = microseconds_of(usage.ru_utime);
  report.values[3] = microseconds_of(usage.ru_stime);
  report.values[4] = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (const auto program = programs_.extract(pid)) return ProgramEnd{program.mapped(), report};
  if (somebody_waits()) early_[pid] = report;
  return std::nullopt;
}

void Zygotes::kill_all() const {
  for (const auto& [pid, zygote] : zygotes_) ::kill(pid, SIGKILL);
}

}  // namespace fixpoint::sandbox::detail
