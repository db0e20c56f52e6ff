#include "sandbox/policy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fixpoint::sandbox {

namespace {

constexpr std::array<std::string_view, 8> kLanguageNames{"python", "c", "cpp", "javascript", "bash", "java", "go", "rust"};

constexpr std::pair<std::string_view, Language> kAliases[] = {
    {"py", Language::python}, {"python3", Language::python},   {"c++", Language::cpp}, {"cc", Language::cpp},
    {"js", Language::javascript}, {"node", Language::javascript}, {"sh", Language::bash},  {"golang", Language::go},
    {"rs", Language::rust}};

constexpr std::array<std::string_view, 20> kProtectionNames{
    "user_namespace", "pid_namespace",     "mount_namespace", "network_namespace", "ipc_namespace",
    "uts_namespace",  "cgroup_namespace",  "read_only_root",  "capped_tmpfs",      "separate_uid",
    "no_new_privileges", "no_capabilities", "landlock",       "seccomp",           "seccomp_names",
    "rlimits",        "cgroup_memory",     "cgroup_pids",     "cgroup_cpu",        "cgroup_kill"};

}  // namespace

std::string_view name(Language language) { return kLanguageNames[static_cast<std::size_t>(language)]; }

std::optional<Language> parse_language(std::string_view text) {
  const auto known = std::find(kLanguageNames.begin(), kLanguageNames.end(), text);
  if (known != kLanguageNames.end()) return static_cast<Language>(known - kLanguageNames.begin());
  for (const auto& [alias, language] : kAliases) {
    if (alias == text) return language;
  }
  return std::nullopt;
}

std::string_view name(Protection protection) { return kProtectionNames[static_cast<std::size_t>(protection)]; }

std::optional<Protection> parse_protection(std::string_view text) {
  const auto known = std::find(kProtectionNames.begin(), kProtectionNames.end(), text);
  if (known == kProtectionNames.end()) return std::nullopt;
  return static_cast<Protection>(known - kProtectionNames.begin());
}

}  // namespace fixpoint::sandbox
