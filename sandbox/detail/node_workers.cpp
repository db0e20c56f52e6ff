#include "sandbox/detail/node_workers.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "sandbox/detail/launcher.h"
#include "sandbox/detail/quiet_write.h"

namespace fixpoint::sandbox::detail {

namespace {

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

}  // namespace

std::optional<RunEnds> NodeWorkers::take(const Job& job) {
  std::list<Worker> taken;
  {
    const std::scoped_lock lock(mutex_);
    for (auto worker = idle_.begin(); worker != idle_.end(); ++worker) {
      if (worker->limits != job.limits) continue;
      taken.splice(taken.end(), idle_, worker);
      break;
    }
  }
  if (taken.empty() || !write_all(taken.front().questions.get(), job_line(job))) return std::nullopt;
  return std::move(taken.front().ends);
}

void NodeWorkers::refill(BrokerProcess& broker, const LaunchFrame& frame, const Limits& limits) {
  std::list<Worker> leaving;  // ended outside the lock: closing their pipe is all it takes
  const std::scoped_lock lock(mutex_);
  for (auto worker = idle_.begin(); worker != idle_.end();) {
    const auto next = std::next(worker);
    if (worker->limits != limits) leaving.splice(leaving.end(), idle_, worker);
    worker = next;
  }
  while (idle_.size() < kReady) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    auto started = start_run(broker, frame, JudgeChannel{read_end.get(), nowhere.get()}, -1);
    if (!started) return;
    idle_.push_back({std::move(*started), std::move(write_end), limits});
  }
}

}  // namespace fixpoint::sandbox::detail
