#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::sandbox::detail {

/// Where the calling process stands in the cgroup hierarchies.
struct CgroupPlaces {
  std::string unified;                                              ///< v2 directory; empty where none is mounted
  std::vector<std::pair<std::string, std::string>> legacy;         ///< v1: controller, directory

  [[nodiscard]] std::string legacy_directory(std::string_view controller) const;
};

/// Pure: from the texts of /proc/self/mountinfo and /proc/self/cgroup.
[[nodiscard]] CgroupPlaces parse_cgroup_places(std::string_view mountinfo, std::string_view cgroup);

}  // namespace fixpoint::sandbox::detail
