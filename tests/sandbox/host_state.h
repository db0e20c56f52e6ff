#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fixpoint::sandbox {

/// What a process holds, read from /proc.
struct ProcessState {
  std::size_t descriptors = 0;
  std::size_t mounts = 0;
  std::size_t resident_kib = 0;
  std::size_t children = 0;
};

inline std::size_t count_entries(const std::string& directory) {
  std::error_code error;
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory, error)) ++count;
  return count;
}

inline std::size_t count_words(const std::string& path) {
  std::ifstream file(path);
  std::size_t count = 0;
  for (std::string word; file >> word;) ++count;
  return count;
}

inline ProcessState state_of(const std::string& pid) {
  ProcessState state;
  state.descriptors = count_entries("/proc/" + pid + "/fd");
  std::ifstream mounts("/proc/" + pid + "/mountinfo");
  for (std::string line; std::getline(mounts, line);) ++state.mounts;
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) state.resident_kib = std::stoul(line.substr(6));
  }
  state.children = count_words("/proc/" + pid + "/task/" + pid + "/children");
  return state;
}

inline std::vector<int> children_of(int pid) {
  std::vector<int> all;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    std::ifstream children(task.path() / "children");
    for (int child = 0; children >> child;) all.push_back(child);
  }
  return all;
}

inline std::string name_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

/// 0 where there is none to be seen.
inline int parent_of(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("PPid:")) return std::stoi(line.substr(5));
  }
  return 0;
}

/// Directories named fixpoint.<pid>.… in any cgroup hierarchy.
inline std::vector<std::string> cgroups_of(int pid) {
  std::vector<std::string> found;
  std::error_code error;
  namespace fs = std::filesystem;
  const std::string prefix = "fixpoint." + std::to_string(pid) + ".";
  for (auto entry = fs::recursive_directory_iterator("/sys/fs/cgroup", fs::directory_options::skip_permission_denied, error);
       entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (error) break;
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  return found;
}

inline bool process_exists(int pid) { return std::filesystem::exists("/proc/" + std::to_string(pid) + "/status"); }

}  // namespace fixpoint::sandbox
