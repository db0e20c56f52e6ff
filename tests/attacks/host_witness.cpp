#include "host_witness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

namespace fixpoint::sandbox::attacks {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t count_mounts() {
  const std::string text = read_file("/proc/self/mountinfo");
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// FNV-1a: enough to see that a file is another one.
std::uint64_t digest(const std::string& path) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const unsigned char byte : read_file(path)) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

std::vector<std::uint64_t> toolchain_digests() {
  std::vector<std::uint64_t> out;
  for (const char* path : {"/usr/bin/python3", "/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/python3.11/os.py", "/usr/bin/gcc"}) out.push_back(digest(path));
  return out;
}

int listener(int family, const sockaddr* address, socklen_t size) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || ::bind(fd, address, size) != 0 || ::listen(fd, 16) != 0) throw std::runtime_error("cannot listen");
  return fd;
}

bool somebody_came(int fd) {
  const int connection = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection >= 0) ::close(connection);
  return connection >= 0;
}

bool process_named(const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") == pid.npos && read_file("/proc/" + pid + "/comm") == name + "\n") return true;
  }
  return false;
}

}  // namespace

HostWitness::HostWitness() : host_name_(host_name()), mounts_(count_mounts()), digests_(toolchain_digests()) {
  char pattern[] = "/tmp/fixpoint-witness-XXXXXX";
  if (::mkdtemp(pattern) == nullptr) throw std::runtime_error("mkdtemp");
  directory_ = pattern;
  // Open to everybody: what keeps programs out must be the sandbox, not these permissions.
  ::chmod(directory_.c_str(), 0777);
  std::random_device random;
  secret_ = "SECRET-" + std::to_string(random()) + std::to_string(random());
  canary_ = directory_ + "/canary";
  std::ofstream(canary_) << secret_;
  ::chmod(canary_.c_str(), 0666);

  sockaddr_in inet{};
  inet.sin_family = AF_INET;
  inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  tcp_ = listener(AF_INET, reinterpret_cast<sockaddr*>(&inet), sizeof inet);
  socklen_t size = sizeof inet;
  ::getsockname(tcp_, reinterpret_cast<sockaddr*>(&inet), &size);
  port_ = ntohs(inet.sin_port);

  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  socket_path_ = directory_ + "/service";
  std::strncpy(path.sun_path, socket_path_.c_str(), sizeof path.sun_path - 1);
  path_socket_ = listener(AF_UNIX, reinterpret_cast<sockaddr*>(&path), sizeof path);
  ::chmod(socket_path_.c_str(), 0777);

  sockaddr_un abstract{};
  abstract.sun_family = AF_UNIX;
  abstract_name_ = "fixpoint-" + secret_;
  std::memcpy(abstract.sun_path + 1, abstract_name_.data(), abstract_name_.size());
  abstract_socket_ = listener(AF_UNIX, reinterpret_cast<sockaddr*>(&abstract),
                              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + abstract_name_.size()));
}

HostWitness::~HostWitness() {
  for (const int fd : {tcp_, path_socket_, abstract_socket_}) ::close(fd);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Placeholders HostWitness::placeholders() const {
  return {{"CANARY", canary_}, {"SOCKET", socket_path_}, {"ABSTRACT", abstract_name_}, {"PORT", std::to_string(port_)}, {"PID", std::to_string(::getpid())}};
}

std::vector<std::string> HostWitness::changes() {
  std::vector<std::string> out;
  const auto expect = [&out](bool fine, const char* what) {
    if (!fine) out.emplace_back(what);
  };
  expect(read_file(canary_) == secret_, "the canary file was changed");
  expect(!somebody_came(tcp_), "a program connected to the host's TCP service");
  expect(!somebody_came(path_socket_), "a program connected to the host's socket file");
  expect(!somebody_came(abstract_socket_), "a program connected to the host's abstract socket");
  expect(host_name() == host_name_, "the host's name was changed");
  expect(count_mounts() == mounts_, "mounts appeared or vanished");
  expect(toolchain_digests() == digests_, "the toolchain was changed");
  expect(!process_named("fp-left-behind"), "a process outlived its run");
  for (const char* path : {"/tmp/left-behind", "/dev/shm/left-behind", "/var/tmp/left-behind", "/usr/evil", "/evil", "/etc/ld.so.preload"}) {
    struct stat seen {};
    expect(::lstat(path, &seen) != 0, path);
  }
  expect(::shmget(0x5afe, 1, 0) < 0, "shared memory was left");
  expect(::syscall(SYS_mq_open, "left", O_RDONLY, 0, nullptr) < 0, "a message queue was left");
  expect(::syscall(SYS_request_key, "user", "marker", nullptr, 0) < 0, "a key was left");
  return out;
}

}  // namespace fixpoint::sandbox::attacks
