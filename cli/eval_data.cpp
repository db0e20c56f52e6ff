#include "cli/eval_data.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "cli/build_info.h"
#include "cli/terminal.h"
#include "evals/catalog.h"

namespace fixpoint::cli {
namespace {

/// The value of the first "name : value" line of a file under /proc.
std::string proc_value(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

}  // namespace

std::filesystem::path default_data_folder() {
  if (const char* folder = std::getenv("FIXPOINT_DATA"); folder != nullptr && *folder != '\0') return folder;
  if (const char* folder = std::getenv("XDG_DATA_HOME"); folder != nullptr && *folder != '\0') return std::filesystem::path(folder) / "fixpoint/benchmarks";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".local/share/fixpoint/benchmarks";
}

std::filesystem::path own_data_folder() {
  std::error_code code;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::filesystem::path installed = executable.parent_path().parent_path() / "share" / "fixpoint";
  if (!code && std::filesystem::exists(installed / evals::family_file().path, code)) return installed;
  return models_in_source();
}

tl::expected<std::filesystem::path, std::string> benchmark_file(const std::string& benchmark, const std::string& data) {
  std::error_code code;
  if (!data.empty() && !std::filesystem::is_directory(data, code)) return std::filesystem::path(data);
  if (data.empty() && benchmark == evals::family_file().benchmark) return own_data_folder() / evals::family_file().path;
  const evals::KnownFile* known = evals::find_known(benchmark);
  if (known == nullptr) return tl::unexpected("no published file is known as '" + benchmark + "' (fixpoint data list names them; --data FILE takes any)");
  const std::filesystem::path file = (data.empty() ? default_data_folder() : std::filesystem::path(data)) / known->path;
  if (!std::filesystem::exists(file, code)) {
    return tl::unexpected(file.string() + " is not there; it comes from " + std::string(known->source) + " (fixpoint data list)");
  }
  return file;
}

std::string machine_name() {
  std::string out;
  if (utsname name{}; uname(&name) == 0) out = std::string(name.sysname) + " " + name.release + ", ";
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  out += std::to_string(std::thread::hardware_concurrency()) + " × " + (model.empty() ? "CPU" : model);
  const double kibibytes = std::strtod(proc_value("/proc/meminfo", "MemTotal").c_str(), nullptr);
  if (kibibytes > 0) out += ", " + human_bytes(kibibytes * 1024);
  return out;
}

}  // namespace fixpoint::cli
