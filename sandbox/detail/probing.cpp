#include "sandbox/detail/probing.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sandbox/detail/box_files.h"
#include "sandbox/detail/launcher.h"

namespace fixpoint::sandbox::detail {

namespace {

constexpr Protection kRequired[] = {
    Protection::pid_namespace, Protection::mount_namespace,   Protection::network_namespace,
    Protection::ipc_namespace, Protection::read_only_root,    Protection::capped_tmpfs,
    Protection::seccomp,       Protection::no_new_privileges, Protection::no_capabilities,
    Protection::rlimits};

/// "<protection> <0|1> <proof>" lines of the probe program.
std::vector<Probe> parse_probe_lines(std::string_view text) {
  std::vector<Probe> probes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t first = line.find(' ');
    if (first == std::string_view::npos || first + 3 > line.size()) continue;
    const std::optional<Protection> protection = parse_protection(line.substr(0, first));
    if (!protection) continue;
    probes.push_back({*protection, line[first + 1] == '1', std::string(line.substr(first + 3))});
  }
  return probes;
}

RunResult run_probe_program(BrokerProcess& broker, bool proc) {
  LaunchRequest request;
  request.frame.template_id = kProbeTemplate;
  request.frame.policy_id = static_cast<std::uint32_t>(Language::c);
  if (proc) request.frame.flags = LaunchFrame::mount_proc;
  request.frame.cpu_milliseconds = 5000;
  request.frame.memory_bytes = 64 << 20;
  request.frame.file_bytes = 1 << 20;
  request.frame.inodes = 16;
  request.frame.processes = 4;
  request.frame.arguments = {"fixpoint-sandbox-probe"};
  request.executable = broker_executable().get();
  request.monitor.limits = Limits{.cpu = std::chrono::seconds(5)};
  return launch(broker, std::move(request), {});
}

}  // namespace

bool notification_available() {
  std::uint32_t action = SECCOMP_RET_USER_NOTIF;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

std::uint32_t protection_bits(std::span<const Protection> protections) {
  std::uint32_t bits = 0;
  for (const Protection protection : protections) bits |= 1U << static_cast<unsigned>(protection);
  return bits;
}

std::span<const Protection> required_protections() { return kRequired; }

tl::expected<std::vector<Probe>, StartError> probe_protections(BrokerProcess& broker,
                                                               std::span<const Protection> without) {
  if (auto started = broker.ensure(); !started) return tl::unexpected(started.error());
  std::vector<Probe> probes;
  for (const ProbesFrame::Item& item : broker.probes().items) {
    probes.push_back({static_cast<Protection>(item.protection), item.active, item.proof});
  }
  RunResult result = run_probe_program(broker, true);
  if (!std::holds_alternative<Ok>(result.outcome)) result = run_probe_program(broker, false);
  if (!std::holds_alternative<Ok>(result.outcome)) {
    return tl::unexpected(StartError{"probe", describe(result.outcome) + result.errors.bytes});
  }
  for (Probe& probe : parse_probe_lines(result.output.bytes)) probes.push_back(std::move(probe));
  for (Probe& probe : probes) {
    if (std::find(without.begin(), without.end(), probe.protection) == without.end()) continue;
    probe.active = false;
    probe.proof = "switched off";
  }
  std::sort(probes.begin(), probes.end(), [](const Probe& a, const Probe& b) { return a.protection < b.protection; });
  return probes;
}

std::optional<SetupError> check_job(const Job& job, const Toolchain& tool) {
  const auto refuse = [](std::string what) { return SetupError{"check_job", std::move(what)}; };
  for (const File& file : job.files) {
    if (!is_safe_path(file.path)) return refuse("files: unsafe path");
    if (tool.compile.empty() && file.path == tool.source_name) return refuse("files: " + file.path + " is the program itself");
  }
  for (const std::string& path : job.collect) {
    if (!is_safe_path(path)) return refuse("collect: unsafe path");
  }
  const auto has_zero = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  for (const std::string& argument : job.arguments) {
    if (has_zero(argument)) return refuse("arguments: zero byte");
  }
  for (const auto& [key, value] : job.environment) {
    if (has_zero(key) || has_zero(value) || key.empty() || key.find('=') != std::string::npos) {
      return refuse("environment: malformed entry");
    }
  }
  if (job.limits.processes == 0) return refuse("limits: processes must be positive");
  return std::nullopt;
}

Outcome compile_outcome(const Outcome& outcome) {
  if (std::holds_alternative<SetupError>(outcome) || std::holds_alternative<InternalError>(outcome) ||
      std::holds_alternative<Cancelled>(outcome)) {
    return outcome;
  }
  if (const auto* exit = std::get_if<ExitNonzero>(&outcome)) return CompileError{"exit " + std::to_string(exit->code)};
  return CompileError{std::string(name(outcome))};
}

Artefact take_artefact(int box, const std::string& path, std::uint64_t limit) {
  if (box < 0) return {path, {}, "the run ended before it was looked at"};
  const Collected collected = open_output(box, path);
  if (collected.error == ENOENT) return {path, {}, "no such file"};
  if (collected.error != 0) return {path, {}, std::string("not a regular file: ") + std::strerror(collected.error)};
  if (collected.size > limit) return {path, {}, "larger than the file limit"};
  return {path, read_artefact(collected.file.get(), limit), {}};
}

}  // namespace fixpoint::sandbox::detail
