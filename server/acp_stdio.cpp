#include "server/acp_stdio.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace fixpoint::server {
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Two threads: one reads, one writes. The peer is used by one of them at a time.
class Stdio {
 public:
  Stdio(SessionHub& hub, const Principal& who, const AcpPeer::Options& options, int output)
      : outbox_(std::make_shared<Outbox>([this] { wake(); })), peer_(hub, who, outbox_, options), limit_(options.limits.bytes), output_(output) {}

  bool run(int input) {
    std::jthread writer([this](const std::stop_token& stop) { write(stop); });
    read(input);
    // What was answered is still written.
    writer.request_stop();
    wake();
    writer.join();
    return !broken_;
  }

 private:
  void wake() {
    {
      const std::scoped_lock lock(wake_mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }

  void read(int input) {
    std::string line;
    bool too_long = false;
    char chunk[64 << 10];
    while (!broken_) {
      const ssize_t size = ::read(input, chunk, sizeof chunk);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return;
      std::string_view text(chunk, static_cast<std::size_t>(size));
      while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (!too_long) line += text.substr(0, end);
        too_long = too_long || line.size() > limit_;
        if (too_long) line.resize(std::min(line.size(), limit_ + 1));  // refused by its length when it ends
        if (end == std::string_view::npos) break;
        receive(line);
        line.clear();
        too_long = false;
        text.remove_prefix(end + 1);
      }
    }
  }

  void receive(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) return;
    const std::scoped_lock lock(peer_mutex_);
    peer_.receive(line);
  }

  void write(const std::stop_token& stop) {
    for (;;) {
      while (auto entry = outbox_->take()) {
        std::optional<std::string> text;
        {
          const std::scoped_lock lock(peer_mutex_);
          text = peer_.render(*std::move(entry));
        }
        if (text && !write_all(output_, *text += '\n')) {
          broken_ = true;
          return;
        }
      }
      if (outbox_->behind()) broken_ = true;
      if (stop.stop_requested() || broken_) return;
      std::unique_lock lock(wake_mutex_);
      changed_.wait(lock, [this] { return woken_; });
      woken_ = false;
    }
  }

  std::mutex wake_mutex_;
  std::condition_variable changed_;
  bool woken_ = false;  // guarded by wake_mutex_
  std::shared_ptr<Outbox> outbox_;
  std::mutex peer_mutex_;
  AcpPeer peer_;
  const std::size_t limit_;
  const int output_;
  std::atomic<bool> broken_{false};
};

}  // namespace

bool run_acp_stdio(SessionHub& hub, const Principal& who, const AcpPeer::Options& options, int input, int output) {
  return Stdio(hub, who, options, output).run(input);
}

}  // namespace fixpoint::server
