#include "sandbox/sandbox.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "sandbox/detail/broker_process.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/compile_cache.h"
#include "sandbox/detail/launcher.h"
#include "sandbox/detail/probing.h"
#include "sandbox/detail/seccomp_filter.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/warm_workers.h"
#include "sandbox/detail/zygote/warm_start.h"

namespace fixpoint::sandbox {

namespace {

using detail::Frame;
using detail::LaunchFrame;

constexpr std::uint32_t kReadyCells = 2;
constexpr std::size_t kCopiedBytes = 256U << 10;

std::uint32_t run_template(Language language) { return static_cast<std::uint32_t>(language) * 2; }
std::uint32_t compile_template(Language language) { return run_template(language) + 1; }
std::uint32_t policy_id(Language language) { return static_cast<std::uint32_t>(language); }

/// What the broker is told once: filters and root file systems.
tl::expected<std::vector<Frame>, StartError> introduction(const Toolchains& toolchains, const Options& options) {
  std::vector<Frame> frames;
  const auto missing = [&options](Protection p) {
    return std::find(options.without.begin(), options.without.end(), p) != options.without.end();
  };
  const bool notify = detail::notification_available() && !missing(Protection::seccomp_names);
  for (const Language language : kLanguages) {
    const auto filter = detail::compile_filter(syscall_policy(language), notify);
    if (!filter) return tl::unexpected(StartError{"seccomp_policy", filter.error().call + ": " + filter.error().detail});
    detail::PolicyFrame frame{policy_id(language), {}};
    for (const detail::BpfInstruction& instruction : *filter) frame.program.push_back(instruction.packed());
    frames.emplace_back(std::move(frame));
  }
  for (const Toolchain& tool : toolchains.found) {
    detail::TemplateFrame root{run_template(tool.language), tool.run_roots, {}, {}, {}};
    if (options.warm && tool.language == Language::python) detail::add_python_zygote(tool, root);
    if (options.warm && tool.language == Language::javascript) detail::add_node_worker(root);
    frames.emplace_back(std::move(root));
    if (!tool.compile.empty()) {
      frames.emplace_back(detail::TemplateFrame{compile_template(tool.language), tool.compile_roots, {}, {}, {}});
    }
  }
  frames.emplace_back(detail::TemplateFrame{detail::kProbeTemplate, {}, {}, {}, {}});
  return frames;
}

detail::HelloFrame hello(const Options& options) {
  detail::HelloFrame frame;
  frame.without = detail::protection_bits(options.without);
  frame.ready_cells = options.warm ? kReadyCells : 0;
  for (std::uint32_t step = 0; step < static_cast<std::uint32_t>(detail::Step::count); ++step) {
    if (!options.fault_step.empty() && detail::kStepNames[step] == options.fault_step) frame.fault_step = step;
  }
  frame.fault = static_cast<std::uint32_t>(options.fault);
  return frame;
}

std::string compile_key(const Job& job, const std::vector<std::string>& command) {
  std::string key;
  const auto add = [&key](std::string_view text) {
    key += std::to_string(text.size()) + ":";
    key += text;
  };
  add(name(job.language));
  for (const std::string& word : command) add(word);
  add(job.source);
  for (const File& file : job.files) {
    add(file.path);
    add(file.content);
  }
  return key;
}

}  // namespace

class Sandbox::Impl {
 public:
  Impl(Options options, Toolchains toolchains, std::vector<Frame> frames)
      : options_(std::move(options)),
        toolchains_(std::move(toolchains)),
        broker_(hello(options_), std::move(frames)),
        cache_(options_.compile_cache_bytes) {}

  tl::expected<void, StartError> probe();
  Verdict run(const Job& job, std::stop_token stop);

  [[nodiscard]] const Protections& protections() const { return protections_; }
  [[nodiscard]] const std::vector<Probe>& probes() const { return probes_; }
  [[nodiscard]] const Toolchains& toolchains() const { return toolchains_; }
  [[nodiscard]] int broker_pid() const { return broker_.pid(); }

 private:
  bool acquire(std::stop_token stop);
  void release();
  void run_acquired(const Job& job, const Toolchain& tool, std::stop_token stop, Verdict& verdict);
  std::shared_ptr<const detail::Compiled> compile(const Job& job, const Toolchain& tool, std::stop_token stop,
                                                  Verdict& verdict);
  LaunchFrame base_frame(const Job& job, const Toolchain& tool, const Limits& limits) const;
  LaunchFrame worker_frame(const Job& job, const Toolchain& tool) const;
  detail::MonitorOptions monitor_options(const Limits& limits, std::string_view input, Overflow overflow) const;

  const Options options_;
  const Toolchains toolchains_;
  detail::BrokerProcess broker_;
  detail::CompileCache cache_;
  std::optional<detail::WarmWorkers> workers_{std::in_place, false};  ///< anew once it is known what the host can count
  Protections protections_;
  std::vector<Probe> probes_;
  std::mutex mutex_;
  std::condition_variable_any slot_freed_;
  std::uint32_t running_ = 0;
};

tl::expected<void, StartError> Sandbox::Impl::probe() {
  auto probes = detail::probe_protections(broker_, options_.without);
  if (!probes) return tl::unexpected(probes.error());
  probes_ = std::move(*probes);
  for (const Probe& probe : probes_) {
    (probe.active ? protections_.active : protections_.missing).push_back(probe.protection);
  }
  workers_.emplace(protections_.has(Protection::cgroup_cpu));
  for (const Protection needed : detail::required_protections()) {
    if (protections_.has(needed) || options_.accept == Strength::degraded) continue;
    const bool switched_off =
        std::find(options_.without.begin(), options_.without.end(), needed) != options_.without.end();
    if (!switched_off) return tl::unexpected(StartError{"host_too_weak", std::string(name(needed)) + " is not available"});
  }
  return {};
}

bool Sandbox::Impl::acquire(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (!slot_freed_.wait(lock, std::move(stop), [this] { return running_ < options_.max_runs; })) return false;
  ++running_;
  return true;
}

void Sandbox::Impl::release() {
  const std::scoped_lock lock(mutex_);
  --running_;
  slot_freed_.notify_one();
}

detail::MonitorOptions Sandbox::Impl::monitor_options(const Limits& limits, std::string_view input,
                                                      Overflow overflow) const {
  return {.input = input,
          .limits = limits,
          .overflow = overflow,
          .forks_uncounted = !protections_.has(Protection::cgroup_pids),
          .address_space_limited = !protections_.has(Protection::cgroup_memory)};
}

LaunchFrame Sandbox::Impl::base_frame(const Job& job, const Toolchain& tool, const Limits& limits) const {
  LaunchFrame frame;
  frame.policy_id = policy_id(job.language);
  frame.cpu_milliseconds = static_cast<std::uint64_t>(std::max<long>(limits.cpu.count(), 1));
  frame.memory_bytes = std::max<std::uint64_t>(limits.memory_bytes + tool.memory_floor_bytes, 1U << 20);
  frame.file_bytes = limits.file_bytes;
  frame.inodes = limits.inodes;
  frame.processes = std::clamp<std::uint32_t>(limits.processes + tool.process_floor, 1, 1U << 20);
  frame.environment = tool.environment;
  if (job.needs_proc || tool.needs_proc) frame.flags |= LaunchFrame::mount_proc;
  // Runtimes that reserve far more than they use cannot live under an address space limit.
  if (!protections_.has(Protection::cgroup_memory) && tool.memory_floor_bytes == 0 && job.compile_flags.empty()) {
    frame.flags |= LaunchFrame::limit_address_space;
  }
  return frame;
}

LaunchFrame Sandbox::Impl::worker_frame(const Job& job, const Toolchain& tool) const {
  LaunchFrame frame = base_frame(job, tool, workers_->limits_for(job.limits));
  frame.template_id = run_template(job.language);
  frame.arguments = tool.run;
  frame.flags |= LaunchFrame::keep_box;
  if (job.language == Language::javascript) frame.arguments = {tool.run[0], "/.fixpoint/worker.js"};
  else frame.flags |= LaunchFrame::fork_zygote | LaunchFrame::wait_for_job;
  return frame;
}

std::shared_ptr<const detail::Compiled> Sandbox::Impl::compile(const Job& job, const Toolchain& tool,
                                                               std::stop_token stop, Verdict& verdict) {
  std::vector<std::string> command = tool.compile;
  if (!job.shared_libraries) command.insert(command.end(), tool.static_linking.begin(), tool.static_linking.end());
  command.insert(command.end(), job.compile_flags.begin(), job.compile_flags.end());
  const std::string key = compile_key(job, command);
  if (auto known = cache_.find(key)) {
    verdict.compile_cached = true;
    return known;
  }
  detail::LaunchRequest request;
  request.frame = base_frame(job, tool, job.compile_limits);
  request.frame.template_id = compile_template(job.language);
  request.frame.arguments = command;
  request.frame.files = {{tool.source_name, job.source, false}};
  for (const File& file : job.files) request.frame.files.push_back({file.path, file.content, file.executable});
  request.frame.flags |= LaunchFrame::keep_box;
  request.monitor = monitor_options(job.compile_limits, {}, Overflow::discard);
  detail::RunResult result = detail::launch(broker_, std::move(request), std::move(stop));
  verdict.compile_usage = result.usage;
  if (!std::holds_alternative<Ok>(result.outcome)) {
    verdict.standard_output = std::move(result.output);
    verdict.standard_error = std::move(result.errors);
    verdict.outcome = detail::compile_outcome(result.outcome);
    return nullptr;
  }
  Artefact program = detail::take_artefact(result.box.get(), tool.artefact, job.compile_limits.file_bytes);
  if (!program.refused.empty()) {
    verdict.standard_error = std::move(result.errors);
    verdict.outcome = CompileError{"the compiler's output: " + program.refused};
    return nullptr;
  }
  auto compiled = std::make_shared<detail::Compiled>();
  compiled->bytes = program.content.size();
  compiled->file = detail::make_memory_file("main", std::as_bytes(std::span(program.content)), true);
  if (!compiled->file.valid()) {
    verdict.outcome = InternalError{"no memory file for the compiled program"};
    return nullptr;
  }
  cache_.insert(key, compiled);
  return compiled;
}

void Sandbox::Impl::run_acquired(const Job& job, const Toolchain& tool, std::stop_token stop, Verdict& verdict) {
  std::shared_ptr<const detail::Compiled> compiled;
  if (!tool.compile.empty()) {
    compiled = compile(job, tool, stop, verdict);
    if (!compiled) return;
  }
  detail::LaunchRequest request;
  LaunchFrame& frame = request.frame;
  frame = base_frame(job, tool, job.limits);
  frame.template_id = run_template(job.language);
  frame.arguments = tool.run;
  frame.arguments.insert(frame.arguments.end(), job.arguments.begin(), job.arguments.end());
  for (const auto& [key, value] : job.environment) frame.environment.push_back(key + "=" + value);
  // A small program stands in the box, where it can find itself as ./main; a large one is run without being copied.
  const bool in_box = compiled && (tool.run[0] != "./main" || job.needs_proc || compiled->bytes <= kCopiedBytes);
  if (compiled) request.executable = compiled->file.get();
  else frame.files.push_back({tool.source_name, job.source, false});
  if (in_box) {
    frame.files.push_back({tool.artefact, {}, true});
    frame.flags |= LaunchFrame::place_executable;
  }
  for (const File& file : job.files) {
    if (file.path != tool.artefact && !(compiled && file.compile_only)) frame.files.push_back({file.path, file.content, file.executable});
  }
  const bool warm = options_.warm && job.start == Start::warm && !job.needs_proc;
  const bool python = warm && job.language == Language::python;
  if (python) {
    frame.flags |= LaunchFrame::fork_zygote;
    verdict.warm = true;
  }
  if (!job.collect.empty()) frame.flags |= LaunchFrame::keep_box;
  request.judge = job.judge;
  request.monitor = monitor_options(job.limits, job.input, job.overflow);
  const bool ahead = python || (warm && job.language == Language::javascript && !job.judge);
  std::optional<detail::RunEnds> worker = ahead ? workers_->take(job, frame) : std::nullopt;
  detail::RunResult result;
  if (worker) {
    verdict.warm = request.monitor.started_ahead = true;
    result = detail::watch_run(std::move(*worker), request.monitor, stop);
    if (std::holds_alternative<SetupError>(result.outcome)) worker.reset();  // it never was ready
  }
  if (!worker) {
    verdict.warm = python;
    request.monitor.started_ahead = false;
    result = detail::launch(broker_, std::move(request), std::move(stop));
  }
  if (ahead) workers_->refill(broker_, worker_frame(job, tool), job.language, job.limits);
  verdict.outcome = std::move(result.outcome);
  verdict.standard_output = std::move(result.output);
  verdict.standard_error = std::move(result.errors);
  verdict.usage = result.usage;
  for (const std::string& path : job.collect) {
    verdict.artefacts.push_back(detail::take_artefact(result.box.get(), path, job.limits.file_bytes));
  }
}

Verdict Sandbox::Impl::run(const Job& job, std::stop_token stop) {
  Verdict verdict;
  verdict.protections = protections_;
  const Toolchain* tool = toolchains_.find(job.language);
  if (tool == nullptr) {
    verdict.outcome = SetupError{"toolchain", "no toolchain for " + std::string(name(job.language))};
    return verdict;
  }
  if (std::optional<SetupError> refused = detail::check_job(job, *tool)) {
    verdict.outcome = std::move(*refused);
    return verdict;
  }
  if (!acquire(stop)) {
    verdict.outcome = Cancelled{};
    return verdict;
  }
  struct Slot {
    Impl& owner;
    ~Slot() { owner.release(); }
  } const slot{*this};
  run_acquired(job, *tool, std::move(stop), verdict);
  return verdict;
}

tl::expected<Sandbox, StartError> Sandbox::start(Options options) {
  Toolchains toolchains = find_toolchains();
  auto frames = introduction(toolchains, options);
  if (!frames) return tl::unexpected(frames.error());
  const bool faulty = !options.fault_step.empty();
  auto impl = std::make_unique<Impl>(std::move(options), std::move(toolchains), std::move(*frames));
  // A broker with a fault cannot run the probe; its runs fail by themselves.
  if (faulty) return Sandbox(std::move(impl));
  if (auto probed = impl->probe(); !probed) return tl::unexpected(probed.error());
  return Sandbox(std::move(impl));
}

Sandbox::Sandbox(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sandbox::Sandbox(Sandbox&&) noexcept = default;
Sandbox& Sandbox::operator=(Sandbox&&) noexcept = default;
Sandbox::~Sandbox() = default;

Verdict Sandbox::run(const Job& job, std::stop_token stop) { return impl_->run(job, std::move(stop)); }
const Protections& Sandbox::protections() const { return impl_->protections(); }
const std::vector<Probe>& Sandbox::probes() const { return impl_->probes(); }
const Toolchains& Sandbox::toolchains() const { return impl_->toolchains(); }
int Sandbox::broker_pid() const { return impl_->broker_pid(); }

}  // namespace fixpoint::sandbox
