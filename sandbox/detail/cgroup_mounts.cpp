#include "sandbox/detail/cgroup_mounts.h"

#include <utility>

namespace fixpoint::sandbox::detail {

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Mount {
  std::string root;
  std::string point;
  std::string type;
  std::string options;
};

/// "36 35 98:0 /root /point rw,… optional… - type source options"
std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    std::size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 3 >= fields.size()) continue;
    mounts.push_back({std::string(fields[3]), std::string(fields[4]), std::string(fields[dash + 1]),
                      std::string(fields[dash + 3])});
  }
  return mounts;
}

/// The directory of `path` below a mount; the mount point itself where the path lies outside of it.
std::string below(const Mount& mount, std::string_view path) {
  const std::string_view root = mount.root == "/" ? std::string_view() : std::string_view(mount.root);
  if (!path.starts_with(root)) return mount.point;
  path.remove_prefix(root.size());
  if (path.empty() || path == "/" || path.find("/../") != std::string_view::npos || path.ends_with("/..")) {
    return mount.point;
  }
  return mount.point + std::string(path);
}

bool has_option(std::string_view options, std::string_view wanted) {
  for (const std::string_view option : split(options, ',')) {
    if (option == wanted) return true;
  }
  return false;
}

}  // namespace

std::string CgroupPlaces::legacy_directory(std::string_view controller) const {
  for (const auto& [name, directory] : legacy) {
    if (name == controller) return directory;
  }
  return {};
}

CgroupPlaces parse_cgroup_places(std::string_view mountinfo, std::string_view cgroup) {
  const std::vector<Mount> mounts = parse_mounts(mountinfo);
  CgroupPlaces places;
  for (const std::string_view line : split(cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    for (const Mount& mount : mounts) {
      if (controllers.empty()) {
        if (mount.type == "cgroup2" && places.unified.empty()) places.unified = below(mount, path);
        continue;
      }
      if (mount.type != "cgroup") continue;
      for (const std::string_view controller : split(controllers, ',')) {
        if (has_option(mount.options, controller) && places.legacy_directory(controller).empty()) {
          places.legacy.emplace_back(controller, below(mount, path));
        }
      }
    }
  }
  return places;
}

}  // namespace fixpoint::sandbox::detail
