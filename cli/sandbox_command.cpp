#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/task.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/terminal.h"
#include "sandbox/sandbox.h"

namespace fixpoint::cli {

namespace {

using nlohmann::json;
namespace sb = fixpoint::sandbox;

/// Exit codes of `fixpoint sandbox run` beside the usual ones: the program's verdict.
enum SandboxExit : int { kNotOk = 10, kSandboxFailed = 11 };

struct RunArguments {
  std::string language;
  std::string file;
  std::string input;
  std::vector<std::string> arguments;
  std::vector<std::string> without;
  double cpu_seconds = 10;
  double wall_seconds = 30;
  std::uint64_t memory_mib = 512;
  std::uint32_t processes = 64;
  std::uint64_t output_kib = 1024;
  std::uint64_t files_mib = 64;
  std::uint32_t inodes = 8192;
  bool as_json = false;
  bool cold = false;
  bool allow_weak = false;
};

double milliseconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1000.0; }

json names(const std::vector<sb::Protection>& protections) {
  json list = json::array();
  for (const sb::Protection protection : protections) list.push_back(sb::name(protection));
  return list;
}

/// The fields of a verdict. Bytes that are not UTF-8 become U+FFFD, and the "_replaced" field says so.
json to_json(const sb::Verdict& verdict) {
  json out;
  out["verdict"] = sb::name(verdict.outcome);
  out["exit_code"] = nullptr;
  out["signal"] = nullptr;
  out["syscall"] = nullptr;
  if (verdict.ok()) out["exit_code"] = 0;
  if (const auto* exit = std::get_if<sb::ExitNonzero>(&verdict.outcome)) out["exit_code"] = exit->code;
  if (const auto* signal = std::get_if<sb::Signalled>(&verdict.outcome)) out["signal"] = signal->number;
  if (const auto* denied = std::get_if<sb::SyscallDenied>(&verdict.outcome)) out["syscall"] = denied->name;
  const auto text = [&out](const char* field, const sb::Output& output) {
    const std::string dumped = json(output.bytes).dump(-1, ' ', false, json::error_handler_t::replace);
    out[field] = json::parse(dumped);
    out[std::string(field) + "_truncated"] = output.truncated;
    out[std::string(field) + "_replaced"] = out[field].get_ref<const std::string&>() != output.bytes;
  };
  text("stdout", verdict.standard_output);
  text("stderr", verdict.standard_error);
  out["wall_ms"] = milliseconds(verdict.usage.wall);
  out["cpu_ms"] = milliseconds(verdict.usage.cpu);
  out["peak_memory_bytes"] = verdict.usage.peak_memory_bytes;
  out["oom_kills"] = verdict.usage.oom_kills;
  out["detail"] = sb::describe(verdict.outcome);
  out["protections"] = {{"active", names(verdict.protections.active)}, {"missing", names(verdict.protections.missing)}};
  return out;
}

void print_plain(const sb::Verdict& verdict) {
  std::fwrite(verdict.standard_output.bytes.data(), 1, verdict.standard_output.bytes.size(), stdout);
  std::fflush(stdout);
  std::fwrite(verdict.standard_error.bytes.data(), 1, verdict.standard_error.bytes.size(), stderr);
  if (verdict.ok()) return;
  const std::string& out = verdict.standard_output.bytes;
  const std::string& errors = verdict.standard_error.bytes;
  const std::string& last = errors.empty() && stdout_is_terminal() ? out : errors;
  if (!last.empty() && last.back() != '\n') std::fputc('\n', stderr);
  std::fprintf(stderr, "fixpoint: %s", sb::describe(verdict.outcome).c_str());
  const bool ran = verdict.usage.wall.count() > 0;
  if (ran) std::fprintf(stderr, " (cpu %.1f ms, wall %.1f ms)", milliseconds(verdict.usage.cpu), milliseconds(verdict.usage.wall));
  std::fputc('\n', stderr);
}

int exit_code(const sb::Verdict& verdict) {
  if (verdict.ok()) return kSuccess;
  const bool failed = std::holds_alternative<sb::SetupError>(verdict.outcome) ||
                      std::holds_alternative<sb::InternalError>(verdict.outcome);
  return failed ? kSandboxFailed : kNotOk;
}

std::chrono::milliseconds from_seconds(double seconds) {
  return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
}

std::string language_names() {
  std::string names;
  for (const sb::Language language : sb::kLanguages) names += (names.empty() ? "" : ", ") + std::string(sb::name(language));
  return names;
}

std::string protection_names() {
  std::string names;
  for (int i = 0; i <= static_cast<int>(sb::Protection::cgroup_kill); ++i) {
    names += (names.empty() ? "" : ", ") + std::string(sb::name(static_cast<sb::Protection>(i)));
  }
  return names;
}

CLI::Validator protection_name() {
  return {[](std::string& text) {
            return sb::parse_protection(text) ? std::string() : "unknown protection '" + text + "'; known are " + protection_names();
          },
          "NAME"};
}

/// What --lang says, in any of the names that `fixpoint solve` takes; else what the file's name says.
tl::expected<sb::Language, std::string> language_of(const RunArguments& arguments) {
  const bool named = !arguments.language.empty();
  const auto language = sb::parse_language(named ? agent::canonical_language(arguments.language) : std::string(agent::language_of_file(arguments.file)));
  if (language) return *language;
  const std::string wrong = named ? "unknown language '" + arguments.language + "'" : "missing, and the name '" + arguments.file + "' does not say the language";
  return tl::unexpected("--lang: " + wrong + "; known are " + language_names());
}

tl::expected<sb::Job, std::string> make_job(const RunArguments& arguments) {
  if (arguments.file == "-" && arguments.input == "-") return tl::unexpected(std::string("--stdin: stdin is the program already"));
  sb::Job job;
  const auto language = language_of(arguments);
  if (!language) return tl::unexpected(language.error());
  job.language = *language;
  auto source = read_input(arguments.file);
  if (!source) return tl::unexpected(source.error());
  job.source = *std::move(source);
  if (!arguments.input.empty()) {
    auto input = read_input(arguments.input);
    if (!input) return tl::unexpected(input.error());
    job.input = *std::move(input);
  }
  job.arguments = arguments.arguments;
  job.limits = {.cpu = from_seconds(arguments.cpu_seconds),
                .wall = from_seconds(arguments.wall_seconds),
                .memory_bytes = arguments.memory_mib << 20,
                .processes = arguments.processes,
                .output_bytes = arguments.output_kib << 10,
                .file_bytes = arguments.files_mib << 20,
                .inodes = arguments.inodes};
  if (arguments.cold) job.start = sb::Start::cold;
  return job;
}

int run_program(const RunArguments& arguments) {
  auto job = make_job(arguments);
  if (!job) return wrong_usage(job.error());
  sb::Options options;
  options.warm = false;
  if (arguments.allow_weak) options.accept = sb::Strength::degraded;
  for (const std::string& text : arguments.without) options.without.push_back(sb::parse_protection(text).value());
  auto sandbox = sb::Sandbox::start(std::move(options));
  if (!sandbox) {
    fail("sandbox: " + sandbox.error().message());
    return kSandboxFailed;
  }
  const sb::Verdict verdict = sandbox->run(*job);
  if (arguments.as_json) std::cout << to_json(verdict).dump() << std::endl;
  else print_plain(verdict);
  return exit_code(verdict);
}

}  // namespace

void add_sandbox_command(CLI::App& app, Run& run) {
  CLI::App* sandbox = app.add_subcommand("sandbox", "Run untrusted programs");
  sandbox->require_subcommand(1);
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = sandbox->add_subcommand("run", "Run one program under limits and say what happened");
  // What the sandbox can pass on, with room for what a language's runtime adds: it refuses 2^26 MiB, and asks the kernel for an
  // RLIMIT_NPROC of twice the processes, which must not be above its own.
  constexpr std::int64_t kMostMib = 1 << 20, kMostProcesses = 1 << 14;
  command->add_option("-l,--lang", arguments->language, language_names() + " (else told from the file's name)");
  command->add_option("file", arguments->file, "The program; - reads it from stdin")->required();
  command->add_option("args", arguments->arguments, "The program's arguments");
  command->add_option("--stdin", arguments->input, "File that becomes the program's stdin; - passes stdin on");
  command->add_option("--cpu", arguments->cpu_seconds, "CPU seconds of all its processes")->check(positive_seconds())->capture_default_str();
  command->add_option("--wall", arguments->wall_seconds, "Wall clock seconds")->check(positive_seconds())->capture_default_str();
  command->add_option("--memory", arguments->memory_mib, "MiB")->transform(positive_count(kMostMib))->capture_default_str();
  command->add_option("--processes", arguments->processes, "Processes and threads at once")->transform(positive_count(kMostProcesses))->capture_default_str();
  command->add_option("--output", arguments->output_kib, "KiB of stdout, and of stderr")->transform(positive_count())->capture_default_str();
  command->add_option("--files", arguments->files_mib, "MiB of files")->transform(positive_count(kMostMib))->capture_default_str();
  command->add_option("--inodes", arguments->inodes, "Number of files")->transform(positive_count())->capture_default_str();
  command->add_option("--without", arguments->without, "Switch a protection off, as if the host lacked it: " + protection_names())->check(protection_name());
  command->add_flag("--json", arguments->as_json, "Print the verdict as JSON");
  command->add_flag("--cold", arguments->cold, "Start a new interpreter");
  command->add_flag("--allow-weak", arguments->allow_weak, "Run although a required protection is missing on this host");
  command->footer("Exit codes: 0 verdict ok, 10 any other verdict of the program, 11 the sandbox could not run it, 2 usage.");
  command->callback([arguments, &run] { run = [arguments] { return run_program(*arguments); }; });
}

}  // namespace fixpoint::cli
