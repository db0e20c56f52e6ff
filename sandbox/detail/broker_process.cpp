#include "sandbox/detail/broker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "sandbox/detail/channel.h"
#include "sandbox/detail/embedded.h"

namespace fixpoint::sandbox::detail {

namespace {

constexpr int kAnswerTimeoutMs = 20'000;

StartError error(const char* step) { return {step, std::strerror(errno)}; }

}  // namespace

const UniqueFd& broker_executable() {
  // High up, because the broker's control socket takes the place of descriptor 3 before the file is executed.
  static const UniqueFd file = [] {
    const UniqueFd made = make_memory_file("fixpoint-broker", embedded_broker(), true);
    return UniqueFd(made.valid() ? ::fcntl(made.get(), F_DUPFD_CLOEXEC, 64) : -1);
  }();
  return file;
}

BrokerProcess::BrokerProcess(HelloFrame hello, std::vector<Frame> introduction)
    : hello_(hello), introduction_(std::move(introduction)) {}

BrokerProcess::~BrokerProcess() {
  const std::scoped_lock lock(mutex_);
  stop();
}

pid_t BrokerProcess::pid() const {
  const std::scoped_lock lock(mutex_);
  return pid_;
}

void BrokerProcess::stop() {
  socket_.reset();
  if (pid_ <= 0) return;
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

tl::expected<void, StartError> BrokerProcess::start() {
  const UniqueFd& executable = broker_executable();
  if (!executable.valid()) return tl::unexpected(error("broker_memory_file"));
  std::optional<SocketPair> sockets = make_socket_pair();
  if (!sockets) return tl::unexpected(error("broker_socket"));
  const std::string path = "/proc/self/fd/" + std::to_string(executable.get());
  char name[] = "fixpoint-sandbox-broker";
  char* arguments[] = {name, nullptr};
  char* environment[] = {nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets->second.get(), 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);  // a terminal's interrupt is the service's to handle
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  errno = posix_spawn(&pid, path.c_str(), &actions, &attributes, arguments, environment);
  const int failed = errno;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    errno = failed;
    return tl::unexpected(error("broker_spawn"));
  }
  pid_ = pid;
  socket_ = std::move(sockets->first);
  sockets->second.reset();
  bool sent = send_frame(socket_.get(), encode(hello_), {});
  pollfd answer{socket_.get(), POLLIN, 0};
  std::optional<Message> message;
  if (sent && ::poll(&answer, 1, kAnswerTimeoutMs) == 1) message = receive_message(socket_.get(), false);
  auto frame = message ? parse_frame(message->bytes) : tl::unexpected(FrameError{0, "none"});
  if (!frame || !std::holds_alternative<ProbesFrame>(*frame)) {
    ::kill(pid_, SIGKILL);
    stop();
    return tl::unexpected(StartError{"broker_hello", "the broker did not answer"});
  }
  ++generation_;
  probes_ = std::get<ProbesFrame>(std::move(*frame));
  for (const Frame& introduction : introduction_) {
    if (!send_frame(socket_.get(), encode(introduction), {})) return tl::unexpected(error("broker_introduction"));
  }
  return {};
}

tl::expected<void, StartError> BrokerProcess::ensure() {
  const std::scoped_lock lock(mutex_);
  // A process that the broker was just forking may hold its socket open a little longer than the broker lives.
  if (socket_.valid() && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
    pid_ = 0;
    socket_.reset();
  }
  if (socket_.valid()) return {};
  return start();
}

tl::expected<void, StartError> BrokerProcess::send(const Frame& frame, std::span<const int> descriptors) {
  const std::vector<std::byte> bytes = encode(frame);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (auto running = ensure(); !running) return running;
    // The lock is not held while sending: messages are atomic. A broker that is replaced meanwhile fails the send.
    int socket = -1;
    std::uint64_t generation = 0;
    {
      const std::scoped_lock lock(mutex_);
      generation = generation_;
      socket = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 3);
    }
    const UniqueFd own(socket);
    if (own.valid() && send_frame(own.get(), bytes, descriptors)) return {};
    if (errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN) return tl::unexpected(error("broker_send"));
    const std::scoped_lock lock(mutex_);
    if (generation == generation_) stop();  // otherwise another thread has replaced it already
  }
  return tl::unexpected(error("broker_send"));
}

}  // namespace fixpoint::sandbox::detail
