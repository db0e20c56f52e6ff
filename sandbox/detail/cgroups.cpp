#include "sandbox/detail/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "sandbox/detail/cgroup_mounts.h"
#include "sandbox/detail/namespaces.h"

namespace fixpoint::sandbox::detail {

namespace {

std::string read_file_at(int directory, const char* path) {
  const UniqueFd file(::openat(directory, path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while (file.valid() && (got = ::read(file.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

bool write_file_at(int directory, const char* path, std::string_view text) {
  const UniqueFd file(::openat(directory, path, O_WRONLY | O_CLOEXEC));
  return file.valid() && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool write_file(const std::string& directory, const char* file, std::string_view text) {
  return write_file_at(AT_FDCWD, (directory + "/" + file).c_str(), text);
}

std::string start_time(const std::string& pid) {
  const std::string stat = read_file_at(AT_FDCWD, ("/proc/" + pid + "/stat").c_str());
  std::size_t at = stat.rfind(')');
  if (at == std::string::npos) return {};
  for (int skip = 0; skip < 20 && at != std::string::npos; ++skip) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return {};
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

UniqueFd open_directory(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool has_word(std::string_view text, std::string_view word) {
  std::size_t at = 0;
  while ((at = text.find(word, at)) != std::string_view::npos) {
    const bool starts = at == 0 || text[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (starts && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
    at = end;
  }
  return false;
}

/// On v2 a directory passes controllers on only when it holds no process itself, so try our own place and what is above it.
std::string unified_parent(const std::string& start, bool& controllers) {
  std::string place = start;
  for (int level = 0; level < 3 && place.rfind('/') != std::string::npos; ++level) {
    const UniqueFd directory = open_directory(place);
    if (!directory.valid() || read_file_at(directory.get(), "cgroup.controllers").empty()) {
      if (level == 0) break;
    }
    for (const char* controller : {"+memory", "+pids", "+cpu"}) {
      (void)write_file_at(directory.get(), "cgroup.subtree_control", controller);
    }
    const std::string passed = read_file_at(directory.get(), "cgroup.subtree_control");
    if (has_word(passed, "memory") && has_word(passed, "pids") && ::access(place.c_str(), W_OK) == 0) {
      controllers = true;
      return place;
    }
    place.resize(place.rfind('/'));
  }
  controllers = false;
  return start;
}

/// A directory whose processes have been killed, but may not be gone yet.
void remove_dying(const std::string& directory) {
  constexpr int kTries = 200, kPauseMs = 5;
  for (int i = 0; i < kTries && ::rmdir(directory.c_str()) != 0 && errno == EBUSY; ++i) {
    if (i == 0) (void)write_file_at(AT_FDCWD, (directory + "/cgroup.kill").c_str(), "1");
    ::poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace

std::string own_cgroup_name() {
  const std::string pid = std::to_string(::getpid());
  return "fixpoint." + pid + "." + start_time(pid);
}

void sweep_cgroups(const std::string& parent) {
  DIR* listing = ::opendir(parent.c_str());
  if (listing == nullptr) return;
  std::vector<std::string> dead;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string entry_name = entry->d_name;
    if (!entry_name.starts_with("fixpoint.")) continue;
    const std::size_t dot = entry_name.find('.', 9);
    if (dot == std::string::npos) continue;
    const std::string pid = entry_name.substr(9, dot - 9);
    const std::string started = start_time(pid);
    // What can't be read for a moment is not dead: another process's runs would be killed.
    const bool gone = started.empty() ? ::kill(std::atoi(pid.c_str()), 0) != 0 && errno == ESRCH : started != entry_name.substr(dot + 1);
    if (!gone) continue;
    // In another pid namespace its owner has another number, but the lock is the same.
    const std::string directory = parent + "/" + entry_name;
    const UniqueFd lock = open_directory(directory);
    if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) dead.push_back(directory);
  }
  ::closedir(listing);
  for (const std::string& directory : dead) {
    if (DIR* leaves = ::opendir(directory.c_str())) {
      while (const dirent* leaf = ::readdir(leaves)) {
        if (leaf->d_type == DT_DIR && leaf->d_name[0] != '.') remove_dying(directory + "/" + leaf->d_name);
      }
      ::closedir(leaves);
    }
    ::rmdir(directory.c_str());
  }
}

CgroupLeaf& CgroupLeaf::operator=(CgroupLeaf&& other) noexcept {
  if (this == &other) return *this;
  remove();
  directories_ = std::exchange(other.directories_, {});
  unified_ = std::move(other.unified_);
  join_ = std::move(other.join_);
  unified_join_ = std::move(other.unified_join_);
  memory_ = std::exchange(other.memory_, {});
  processes_ = std::exchange(other.processes_, {});
  memory_unified_ = other.memory_unified_;
  counters_ = std::move(other.counters_);
  share_ = std::exchange(other.share_, {});
  share_unified_ = other.share_unified_;
  usage_ = std::move(other.usage_);
  current_ = other.current_;
  return *this;
}

CgroupLeaf::~CgroupLeaf() { remove(); }

bool CgroupLeaf::remove() {
  join_.clear();
  unified_join_.reset();
  counters_ = {};
  usage_.reset();
  unified_.reset();
  memory_ = processes_ = share_ = {};
  bool clean = true;
  for (const std::string& directory : std::exchange(directories_, {})) clean = ::rmdir(directory.c_str()) == 0 && clean;
  return clean;
}

void CgroupLeaf::kill() const {
  if (unified_.valid()) (void)write_file_at(unified_.get(), "cgroup.kill", "1");
}

void CgroupLeaf::kill_first() const {
  // v1's shares go further, but ten times the usual is enough.
  if (!share_.empty()) (void)write_file(share_, share_unified_ ? "cpu.weight" : "cpu.shares", "10000");
  kill();
}

Failure CgroupLeaf::set_limits(const CgroupLimits& limits) {
  const auto failed = [] { return Failure{Step::set_cgroup_limits, errno}; };
  if (!memory_.empty() && limits.memory_bytes != current_.memory_bytes) {
    if (!write_file(memory_, memory_unified_ ? "memory.max" : "memory.limit_in_bytes", std::to_string(limits.memory_bytes))) return failed();
    current_.memory_bytes = limits.memory_bytes;
  }
  if (!processes_.empty() && limits.processes != current_.processes) {
    // The run's init counts as well.
    if (!write_file(processes_, "pids.max", std::to_string(limits.processes + 1))) return failed();
    current_.processes = limits.processes;
  }
  return {};
}

bool CgroupLeaf::recycle() {
  constexpr std::uint64_t kKeptBytes = 8U << 20;
  if (memory_unified_ || memory_.empty()) return false;
  if (unified_.valid() && parse_field(read_file_at(unified_.get(), "cgroup.events"), "populated") != 0) return false;
  const std::uint64_t kept = parse_number(reread(usage_));
  if (parse_field(reread(counters_.oom), "oom_kill") > 0 || parse_field(reread(counters_.forks), "max") > 0 || kept > kKeptBytes) return false;
  if (::pwrite(counters_.peak.get(), "0", 1, 0) != 1) return false;
  counters_.kept_bytes = kept;
  return true;
}

std::vector<int> CgroupLeaf::join_descriptors() const {
  std::vector<int> all;
  for (const UniqueFd& file : join_) all.push_back(file.get());
  return all;
}

std::vector<int> CgroupLeaf::join_later_descriptors() {
  std::vector<int> all = join_descriptors();
  if (unified_.valid() && !unified_join_.valid()) {
    unified_join_.reset(::openat(unified_.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
  }
  if (unified_join_.valid()) all.push_back(unified_join_.get());
  return all;
}

bool CgroupTree::make_own(const std::string& parent, CgroupController& slot) {
  if (parent.empty()) {
    slot.refused = "not mounted";
    return false;
  }
  const std::string path = parent + "/" + own_cgroup_name();
  const auto known = std::find_if(own_.begin(), own_.end(), [&path](const Own& own) { return own.directory == path; });
  if (known == own_.end()) {
    sweep_cgroups(parent);
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
      slot.refused = path + ": " + std::strerror(errno);
      return false;
    }
    Own own{path, open_directory(path)};
    (void)::flock(own.lock.get(), LOCK_EX | LOCK_NB);
    own_.push_back(std::move(own));
  }
  slot.directory = path;
  return true;
}

CgroupTree::CgroupTree(const CgroupWish& wish) {
  const CgroupPlaces places = parse_cgroup_places(read_file_at(AT_FDCWD, "/proc/self/mountinfo"),
                                                  read_file_at(AT_FDCWD, "/proc/self/cgroup"));
  bool controllers = false;
  if (wish.unified && !places.unified.empty()) {
    const std::string parent = unified_parent(places.unified, controllers);
    unified_.unified = make_own(parent, unified_);
  } else {
    unified_.refused = wish.unified ? "no cgroup v2 mounted" : "switched off";
  }
  if (controllers && unified_.usable()) {
    const UniqueFd own = open_directory(unified_.directory);
    for (const char* controller : {"+memory", "+pids", "+cpu"}) {
      (void)write_file_at(own.get(), "cgroup.subtree_control", controller);
    }
  }
  const auto choose = [&](CgroupController& slot, bool wanted, const char* legacy) {
    if (!wanted) {
      slot.refused = "switched off";
    } else if (controllers && unified_.usable()) {
      slot = unified_;
    } else {
      make_own(places.legacy_directory(legacy), slot);
    }
  };
  choose(memory_, wish.memory, "memory");
  choose(processes_, wish.processes, "pids");
  // Every v2 directory counts CPU time, with or without the controller.
  if (wish.cpu && unified_.usable()) cpu_ = unified_;
  else choose(cpu_, wish.cpu, "cpuacct");
  // All programs together get the processor time of one other group. Outside of such a group each is a session of its own to the
  // scheduler, with a share of its own, and what has to start, watch and end them starves.
  choose(share_, wish.cpu, "cpu");
  probe();
}

CgroupTree& CgroupTree::operator=(CgroupTree&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(processes_, other.processes_);
  std::swap(cpu_, other.cpu_);
  std::swap(share_, other.share_);
  std::swap(unified_, other.unified_);
  std::swap(kill_, other.kill_);
  std::swap(own_, other.own_);
  std::swap(next_, other.next_);
  return *this;
}

CgroupTree::~CgroupTree() {
  for (const Own& own : own_) ::rmdir(own.directory.c_str());
}

void CgroupTree::probe() {
  std::optional<CgroupLeaf> leaf = make_leaf();
  const auto refuse = [](CgroupController& slot, std::string why) {
    if (slot.usable()) slot = {{}, false, std::move(why)};
  };
  if (!leaf) {
    const std::string why = std::string("cannot make a leaf: ") + std::strerror(errno);
    for (CgroupController* slot : {&memory_, &processes_, &cpu_, &share_, &unified_}) refuse(*slot, why);
    kill_.refused = why;
    return;
  }
  probe_kill(*leaf);
  constexpr std::uint64_t kProbeBytes = 64ULL << 20;
  (void)leaf->set_limits({kProbeBytes, 17});
  const auto read = [](const std::string& directory, const char* file) { return read_file_at(AT_FDCWD, (directory + "/" + file).c_str()); };
  if (!leaf->memory_.empty()) {
    const char* file = leaf->memory_unified_ ? "memory.max" : "memory.limit_in_bytes";
    if (parse_number(read(leaf->memory_, file)) != kProbeBytes) refuse(memory_, "the limit does not read back");
  }
  if (!leaf->processes_.empty() && parse_number(read(leaf->processes_, "pids.max")) != 18) {
    refuse(processes_, "the limit does not read back");
  }
  if (!leaf->counters_.cpu.valid()) refuse(cpu_, "no counter");
}

/// A child that waits in a leaf must die when the leaf is killed.
void CgroupTree::probe_kill(const CgroupLeaf& leaf) {
  if (!unified_.usable()) {
    kill_.refused = unified_.refused;
    return;
  }
  if (::faccessat(leaf.unified_directory(), "cgroup.kill", W_OK, 0) != 0) {
    kill_.refused = std::string("cgroup.kill: ") + std::strerror(errno);
    return;
  }
  UniqueFd handle;
  const pid_t child = clone_process({0, leaf.unified_directory()}, handle);
  if (child == 0) {
    ::pause();
    ::_exit(1);
  }
  if (child < 0) {
    kill_.refused = std::string("clone into a leaf: ") + std::strerror(errno);
    unified_ = {{}, false, kill_.refused};
    return;
  }
  leaf.kill();
  constexpr int kKillMs = 5000;
  pollfd ended{handle.get(), POLLIN, 0};
  const bool died = ::poll(&ended, 1, kKillMs) == 1;
  if (!died) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (died && WIFSIGNALED(status)) kill_ = unified_;
  else kill_.refused = "a child survived";
}

std::optional<CgroupLeaf> CgroupTree::make_leaf() {
  CgroupLeaf leaf;
  const std::string leaf_name = "/run" + std::to_string(next_++);
  const auto make = [&](const std::string& directory) {
    if (::mkdir(directory.c_str(), 0755) != 0) return false;
    leaf.directories_.push_back(directory);
    return true;
  };
  if (unified_.usable()) {
    const std::string directory = unified_.directory + leaf_name;
    if (make(directory)) leaf.unified_ = open_directory(directory);
    if (!leaf.unified_.valid()) return std::nullopt;
  }
  // One directory for each hierarchy: controllers may share one.
  const auto place = [&](const CgroupController& slot, std::string& directory) {
    if (!slot.usable()) return true;
    directory = slot.directory + leaf_name;
    if (std::find(leaf.directories_.begin(), leaf.directories_.end(), directory) != leaf.directories_.end()) return true;
    UniqueFd join(make(directory) ? ::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC) : -1);
    if (!join.valid()) {
      directory.clear();
      return false;
    }
    leaf.join_.push_back(std::move(join));
    return true;
  };
  std::string cpu;
  if (!place(memory_, leaf.memory_) || !place(processes_, leaf.processes_) || !place(cpu_, cpu)) return std::nullopt;
  (void)place(share_, leaf.share_);
  leaf.share_unified_ = share_.unified;
  leaf.memory_unified_ = memory_.unified;
  if (leaf.memory_unified_) {
    (void)write_file(leaf.memory_, "memory.swap.max", "0");  // absent where the kernel has no swap accounting
    (void)write_file(leaf.memory_, "memory.oom.group", "1");
  } else if (!leaf.memory_.empty()) {
    (void)write_file(leaf.memory_, "memory.swappiness", "0");
  }
  const auto open_counter = [](const std::string& directory, const char* file, int access = O_RDONLY) {
    return UniqueFd(directory.empty() ? -1 : ::open((directory + "/" + file).c_str(), access | O_CLOEXEC));
  };
  leaf.counters_.peak = leaf.memory_unified_ ? open_counter(leaf.memory_, "memory.peak") : open_counter(leaf.memory_, "memory.max_usage_in_bytes", O_RDWR);
  leaf.counters_.oom = open_counter(leaf.memory_, leaf.memory_unified_ ? "memory.events" : "memory.oom_control");
  leaf.usage_ = open_counter(leaf.memory_, leaf.memory_unified_ ? "memory.current" : "memory.usage_in_bytes");
  leaf.counters_.cpu = open_counter(cpu, cpu_.unified ? "cpu.stat" : "cpuacct.usage");
  leaf.counters_.forks = open_counter(leaf.processes_, "pids.events");
  return leaf;
}

}  // namespace fixpoint::sandbox::detail
