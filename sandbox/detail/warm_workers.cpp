#include "sandbox/detail/warm_workers.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "sandbox/detail/channel.h"
#include "sandbox/detail/launcher.h"
#include "sandbox/detail/quiet_write.h"

namespace fixpoint::sandbox::detail {

namespace {

/// CPU time that a worker is started with is rounded up to this, so that a session's next run, with a little less time, fits too.
constexpr std::chrono::seconds kCountedGrain{10};
/// The kernel's own limit knows whole seconds.
constexpr std::chrono::seconds kLimitGrain{1};

/// A worker reads its job at once; one that does not is broken.
constexpr int kReadTimeoutMs = 10'000;

void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      out += escape.data();
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

void append_file(std::string& out, std::string_view path, std::string_view content, bool executable) {
  out += "{\"path\":";
  append_escaped(out, path);
  out += ",\"base64\":\"" + base64(content) + "\",\"executable\":" + (executable ? "true}" : "false}");
}

std::string job_line(const Job& job) {
  std::string out = "{\"files\":[";
  append_file(out, "main.js", job.source, false);
  for (const File& file : job.files) {
    out += ',';
    append_file(out, file.path, file.content, file.executable);
  }
  out += "],\"arguments\":[";
  for (std::size_t i = 0; i < job.arguments.size(); ++i) {
    if (i > 0) out += ',';
    append_escaped(out, job.arguments[i]);
  }
  out += "],\"environment\":{";
  for (std::size_t i = 0; i < job.environment.size(); ++i) {
    if (i > 0) out += ',';
    append_escaped(out, job.environment[i].first);
    out += ':';
    append_escaped(out, job.environment[i].second);
  }
  return out + "}}";
}

/// False where the worker is no longer there.
bool write_all(int pipe, std::string_view text) {
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  while (!text.empty()) {
    const ssize_t written = write_quietly(pipe, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      pollfd room{pipe, POLLOUT, 0};
      if (::poll(&room, 1, kReadTimeoutMs) <= 0) return false;
    } else if (written >= 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

/// What a program brings must surely fit into its working directory: only a launch can say that it does not.
bool fits(const LaunchFrame& frame) {
  constexpr std::uint64_t kPage = 4096, kInodesOfAFile = 5;
  std::uint64_t bytes = 0;
  for (const FrameFile& file : frame.files) bytes += file.content.size() + 2 * kPage;
  return 2 * bytes <= frame.file_bytes && kInodesOfAFile * (frame.files.size() + 1) <= frame.inodes;
}

bool give(Language language, int channel, const Job& job, const LaunchFrame& frame) {
  if (language == Language::javascript) return write_all(channel, job_line(job));
  LaunchFrame own = frame;
  std::vector<int> descriptors;
  if (job.judge) {
    own.flags |= LaunchFrame::judge;
    descriptors = {job.judge->questions_fd, job.judge->answers_fd};
  }
  return send_frame(channel, encode(own), descriptors);
}

enum class State { starting, ready, dead };

State state_of(int ready) {
  pollfd word{ready, POLLIN, 0};
  if (::poll(&word, 1, 0) != 1) return State::starting;
  return (word.revents & POLLHUP) != 0 ? State::dead : State::ready;
}

/// The worker's end, then ours: Node reads a pipe, a fork of the zygote takes frames.
std::optional<std::pair<UniqueFd, UniqueFd>> make_channel(Language language) {
  if (language == Language::javascript) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
    return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
  }
  std::optional<SocketPair> sockets = make_socket_pair();
  if (!sockets) return std::nullopt;
  return std::pair(std::move(sockets->first), std::move(sockets->second));
}

}  // namespace

Limits WarmWorkers::limits_for(Limits limits) const {
  const std::chrono::milliseconds grain = cpu_is_counted_ ? kCountedGrain : kLimitGrain;
  limits.cpu = (limits.cpu + grain - std::chrono::milliseconds(1)) / grain * grain;
  return limits;
}

bool WarmWorkers::keeps(const Worker& worker, Limits limits) const {
  limits = limits_for(limits);
  const bool cpu = cpu_is_counted_ ? worker.limits.cpu >= limits.cpu : worker.limits.cpu == limits.cpu;
  limits.cpu = worker.limits.cpu;
  limits.wall = worker.limits.wall;
  return cpu && worker.limits == limits;
}

std::optional<RunEnds> WarmWorkers::take(const Job& job, const LaunchFrame& frame) {
  if (!fits(frame)) return std::nullopt;
  std::list<Worker> taken;
  {
    const std::scoped_lock lock(mutex_);
    for (auto worker = idle_.begin(); worker != idle_.end(); ++worker) {
      if (worker->language != job.language || !keeps(*worker, job.limits)) continue;
      const State state = state_of(worker->ready.get());
      // A Node that is still starting is ahead of a cold one; for Python another fork of the zygote is as near.
      if (state == State::dead || (state == State::starting && job.language == Language::python)) continue;
      taken.splice(taken.end(), idle_, worker);
      break;
    }
  }
  if (taken.empty() || !give(job.language, taken.front().channel.get(), job, frame)) return std::nullopt;
  return std::move(taken.front().ends);
}

void WarmWorkers::refill(BrokerProcess& broker, const LaunchFrame& frame, Language language, const Limits& limits) {
  std::list<Worker> leaving;  // ended outside the lock: closing their channel is all it takes
  const std::scoped_lock lock(mutex_);
  std::size_t ready = 0;
  for (auto worker = idle_.begin(); worker != idle_.end();) {
    const auto next = std::next(worker);
    if (worker->language == language) {
      if (keeps(*worker, limits) && state_of(worker->ready.get()) != State::dead) ++ready;
      else leaving.splice(leaving.end(), idle_, worker);
    }
    worker = next;
  }
  for (; ready < kReady; ++ready) {
    auto channel = make_channel(language);
    std::array<int, 2> ready_ends{};
    if (!channel || ::pipe2(ready_ends.data(), O_CLOEXEC) != 0) return;
    UniqueFd ready_end(ready_ends[0]);
    const UniqueFd says_ready(ready_ends[1]);
    auto started = start_run(broker, frame, JudgeChannel{channel->first.get(), says_ready.get()}, -1);
    if (!started) return;
    idle_.push_back({language, std::move(*started), std::move(channel->second), std::move(ready_end), limits_for(limits)});
  }
}

}  // namespace fixpoint::sandbox::detail
