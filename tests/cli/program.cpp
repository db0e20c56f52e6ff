#include "tests/cli/program.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace fixpoint::cli_tests {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& file, const std::string& content) { std::ofstream(file, std::ios::binary) << content; }

nlohmann::json Ran::json() const {
  std::string text = out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return nlohmann::json::parse(text.substr(text.rfind('\n') + 1), nullptr, false);
}

std::string ProgramTest::model() const {
  const auto path = file("tiny.gguf");
  if (!std::filesystem::exists(path)) test_models::write_random_model(path, {});
  return path.string();
}

Ran ProgramTest::run(const std::vector<std::string>& arguments, const std::string& out) const {
  const std::string to = out.empty() ? file("stdout").string() : out;
  const std::string err = file("stderr").string();
  std::vector<char*> argv{const_cast<char*>(FIXPOINT_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    const int in_fd = open("/dev/null", O_RDONLY);
    const int out_fd = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err_fd = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0) _exit(126);
    execv(FIXPOINT_BINARY, argv.data());
    _exit(127);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) throw std::runtime_error("waitpid failed");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out.empty() ? content_of(to) : std::string(), content_of(err)};
}

Ran ProgramTest::on_terminal(const std::vector<std::string>& arguments, const std::string& interrupt_at) const {
  std::vector<char*> argv{const_cast<char*>(FIXPOINT_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid < 0) throw std::runtime_error("forkpty failed");
  if (pid == 0) {
    execv(FIXPOINT_BINARY, argv.data());
    _exit(127);
  }
  std::string out;
  bool interrupted = interrupt_at.empty();
  char buffer[4096];
  for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;) {  // an error: the other side is gone
    out.append(buffer, static_cast<std::size_t>(got));
    if (!interrupted && out.find(interrupt_at) != std::string::npos) interrupted = ::write(terminal, "\x03", 1) == 1;
  }
  close(terminal);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) throw std::runtime_error("waitpid failed");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, {}};
}

Ran ProgramTest::with_model(std::vector<std::string> arguments, const std::string& out) const {
  const std::vector<std::string> options{"-m", model(), "--threads", "1", "--kv-memory", "8M"};
  arguments.insert(arguments.begin() + 1, options.begin(), options.end());
  return run(arguments, out);
}

}  // namespace fixpoint::cli_tests
