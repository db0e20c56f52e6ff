#include "tests/e2e/cuts/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>
#include <utility>

extern char** environ;

namespace fixpoint::cuts {

Process::Process(const std::vector<std::string>& command, bool read_stderr) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int ends[2] = {-1, -1};
  if (read_stderr) {
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  }
  const int error = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (ends[1] >= 0) ::close(ends[1]);
  errors_ = ends[0];
  if (error != 0) throw std::runtime_error(command[0] + " can't be started");
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), errors_(std::exchange(other.errors_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(errors_, other.errors_);
  return *this;
}

Process::~Process() {
  kill();
  if (errors_ >= 0) ::close(errors_);
}

void Process::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

int Process::exit_code(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (std::chrono::steady_clock::now() >= deadline) return kRunning;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string Process::wait_for(const std::string& words) {
  std::string text;
  char byte = 0;
  while (::read(errors_, &byte, 1) == 1) {
    text += byte;
    if (byte != '\n') continue;
    const std::size_t line = text.rfind('\n', text.size() - 2) == std::string::npos ? 0 : text.rfind('\n', text.size() - 2) + 1;
    const std::size_t found = text.find(words, line);
    if (found != std::string::npos) return text.substr(found + words.size(), text.size() - 1 - found - words.size());
  }
  throw std::runtime_error("it ended: " + text);
}

}  // namespace fixpoint::cuts
