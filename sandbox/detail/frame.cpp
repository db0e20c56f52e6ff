#include "sandbox/detail/frame.h"

#include <algorithm>
#include <cstring>

#include "sandbox/policy.h"

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::uint32_t kMagic = 0x46505831;  // "FPX1"
enum FrameKind : std::uint32_t { kTemplate = 1, kPolicy = 2, kLaunch = 3, kHello = 4, kProbes = 5, kFork = 6 };
constexpr std::uint32_t kMaxItems = 4096;
constexpr std::uint32_t kMaxText = 64U << 20;
constexpr std::uint32_t kMaxPath = 4096;
constexpr std::uint32_t kMaxInstructions = 4096;  // BPF_MAXINSNS

class Writer {
 public:
  void number(std::uint32_t value) { raw(&value, sizeof value); }
  void number64(std::uint64_t value) { raw(&value, sizeof value); }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    raw(value.data(), value.size());
  }
  void texts(const std::vector<std::string>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const std::string& value : values) text(value);
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void raw(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

/// Reads fields in order; after the first error every further read yields nothing.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint32_t number(std::string_view field) { return fixed<std::uint32_t>(field); }
  std::uint64_t number64(std::string_view field) { return fixed<std::uint64_t>(field); }

  std::string text(std::string_view field, std::uint32_t limit) {
    const std::uint32_t size = number(field);
    if (failed_ || size > limit || size > bytes_.size() - offset_) return fail(field), std::string();
    std::string value(reinterpret_cast<const char*>(bytes_.data() + offset_), size);
    offset_ += size;
    return value;
  }

  /// Text that becomes a C string: no zero bytes inside.
  std::string c_text(std::string_view field, std::uint32_t limit) {
    std::string value = text(field, limit);
    if (value.find('\0') != std::string::npos) fail(field);
    return value;
  }

  std::vector<std::string> texts(std::string_view field, std::uint32_t limit) {
    std::vector<std::string> values;
    const std::uint32_t count = number(field);
    if (count > kMaxItems) fail(field);
    for (std::uint32_t i = 0; i < count && !failed_; ++i) values.push_back(c_text(field, limit));
    return values;
  }

  std::string path(std::string_view field) {
    std::string value = c_text(field, kMaxPath);
    if (!failed_ && !is_safe_path(value)) fail(field);
    return value;
  }

  void check(bool good, std::string_view field) {
    if (!good) fail(field);
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return offset_ == bytes_.size(); }
  [[nodiscard]] FrameError error() const { return error_; }

 private:
  template <class T>
  T fixed(std::string_view field) {
    T value{};
    if (failed_ || sizeof value > bytes_.size() - offset_) return fail(field), T{};
    std::memcpy(&value, bytes_.data() + offset_, sizeof value);
    offset_ += sizeof value;
    return value;
  }
  void fail(std::string_view field) {
    if (failed_) return;
    failed_ = true;
    error_ = {offset_, field};
  }

  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  bool failed_ = false;
  FrameError error_;
};

void write(Writer& out, const HelloFrame& frame) {
  out.number(kHello);
  out.number(frame.without);
  out.number(frame.ready_cells);
  out.number(frame.fault_step);
  out.number(frame.fault);
}

void write(Writer& out, const ProbesFrame& frame) {
  out.number(kProbes);
  out.number(static_cast<std::uint32_t>(frame.items.size()));
  for (const ProbesFrame::Item& item : frame.items) {
    out.number(item.protection);
    out.number(item.active ? 1 : 0);
    out.text(item.proof);
  }
}

void write_files(Writer& out, const std::vector<FrameFile>& files) {
  out.number(static_cast<std::uint32_t>(files.size()));
  for (const FrameFile& file : files) {
    out.text(file.path);
    out.text(file.content);
    out.number(file.executable ? 1 : 0);
  }
}

void write(Writer& out, const TemplateFrame& frame) {
  out.number(kTemplate);
  out.number(frame.id);
  out.texts(frame.roots);
  write_files(out, frame.files);
  out.texts(frame.zygote);
  out.texts(frame.environment);
}

void write(Writer& out, const ForkFrame& frame) {
  out.number(kFork);
  for (const std::uint32_t value :
       {frame.init, frame.change_uid, frame.uid, frame.nested_user_namespace, frame.namespaces, frame.landlock_version,
        frame.notify, frame.judge, frame.wait_for_job, frame.processes, frame.fault_step, frame.fault}) {
    out.number(value);
  }
  for (const std::uint64_t value : {frame.cpu_milliseconds, frame.file_bytes, frame.address_space_bytes}) out.number64(value);
  out.texts(frame.arguments);
  out.texts(frame.environment);
}

void write(Writer& out, const PolicyFrame& frame) {
  out.number(kPolicy);
  out.number(frame.id);
  out.number(static_cast<std::uint32_t>(frame.program.size()));
  for (const std::uint64_t instruction : frame.program) out.number64(instruction);
}

void write(Writer& out, const LaunchFrame& frame) {
  out.number(kLaunch);
  for (const std::uint32_t value : {frame.template_id, frame.policy_id, frame.flags}) out.number(value);
  for (const std::uint64_t value : {frame.cpu_milliseconds, frame.memory_bytes, frame.file_bytes}) out.number64(value);
  out.number(frame.inodes);
  out.number(frame.processes);
  out.texts(frame.arguments);
  out.texts(frame.environment);
  write_files(out, frame.files);
}

HelloFrame read_hello(Reader& in) {
  HelloFrame frame;
  frame.without = in.number("without");
  frame.ready_cells = in.number("ready cells");
  in.check(frame.ready_cells <= 64, "ready cells");
  frame.fault_step = in.number("fault step");
  frame.fault = in.number("fault");
  in.check(frame.fault <= static_cast<std::uint32_t>(Fault::waits), "fault");
  return frame;
}

ProbesFrame read_probes(Reader& in) {
  ProbesFrame frame;
  const std::uint32_t count = in.number("probes");
  in.check(count <= 64, "probes");
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    ProbesFrame::Item item;
    item.protection = in.number("protection");
    in.check(item.protection < 32, "protection");
    const std::uint32_t active = in.number("active");
    in.check(active <= 1, "active");
    item.active = active == 1;
    item.proof = in.text("proof", kMaxPath);
    frame.items.push_back(std::move(item));
  }
  return frame;
}

std::vector<FrameFile> read_files(Reader& in) {
  std::vector<FrameFile> files;
  const std::uint32_t count = in.number("files");
  in.check(count <= kMaxItems, "files");
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    FrameFile file;
    file.path = in.path("file path");
    file.content = in.text("file content", kMaxText);
    const std::uint32_t executable = in.number("file executable");
    in.check(executable <= 1, "file executable");
    file.executable = executable == 1;
    files.push_back(std::move(file));
  }
  return files;
}

TemplateFrame read_template(Reader& in) {
  TemplateFrame frame;
  frame.id = in.number("template");
  frame.roots = in.texts("roots", kMaxPath);
  for (const std::string& root : frame.roots) {
    in.check(root.starts_with('/') && root.find("/../") == std::string::npos && !root.ends_with("/.."), "roots");
  }
  frame.files = read_files(in);
  frame.zygote = in.texts("zygote", kMaxPath);
  frame.environment = in.texts("environment", kMaxPath);
  return frame;
}

ForkFrame read_fork(Reader& in) {
  ForkFrame frame;
  for (std::uint32_t* value :
       {&frame.init, &frame.change_uid, &frame.uid, &frame.nested_user_namespace, &frame.namespaces,
        &frame.landlock_version, &frame.notify, &frame.judge, &frame.wait_for_job,
        &frame.processes, &frame.fault_step, &frame.fault}) {
    *value = in.number("fork");
  }
  in.check(frame.judge <= 1, "judge");
  in.check(frame.wait_for_job <= 1, "wait for job");
  for (std::uint64_t* value : {&frame.cpu_milliseconds, &frame.file_bytes, &frame.address_space_bytes}) {
    *value = in.number64("fork limits");
  }
  frame.arguments = in.texts("arguments", 1U << 17);
  frame.environment = in.texts("environment", 1U << 17);
  return frame;
}

PolicyFrame read_policy(Reader& in) {
  PolicyFrame frame;
  frame.id = in.number("policy");
  const std::uint32_t count = in.number("program");
  in.check(count > 0 && count <= kMaxInstructions, "program");
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) frame.program.push_back(in.number64("program"));
  return frame;
}

LaunchFrame read_launch(Reader& in) {
  LaunchFrame frame;
  frame.template_id = in.number("template");
  frame.policy_id = in.number("policy");
  frame.flags = in.number("flags");
  in.check((frame.flags & ~LaunchFrame::kAllFlags) == 0, "flags");
  frame.cpu_milliseconds = in.number64("cpu");
  frame.memory_bytes = in.number64("memory");
  frame.file_bytes = in.number64("file bytes");
  in.check(frame.memory_bytes >= 1U << 20 && frame.memory_bytes <= 1ULL << 46, "memory");
  in.check(frame.file_bytes <= 1ULL << 46, "file bytes");
  frame.inodes = in.number("inodes");
  frame.processes = in.number("processes");
  in.check(frame.processes >= 1 && frame.processes <= 1U << 20, "processes");
  frame.arguments = in.texts("arguments", 1U << 17);
  in.check(!frame.arguments.empty(), "arguments");
  frame.environment = in.texts("environment", 1U << 17);
  frame.files = read_files(in);
  const bool placed = frame.has(LaunchFrame::place_executable);
  in.check(!placed || (frame.has(LaunchFrame::executable) && !frame.files.empty() && frame.files[0].content.empty()), "flags");
  return frame;
}

bool is_safe_component(std::string_view component) {
  if (component.empty() || component.size() > 100 || component == "." || component == ".." || component[0] == '-') {
    return false;
  }
  return std::all_of(component.begin(), component.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

bool is_safe_path(std::string_view path) {
  for (int depth = 0; depth < 4; ++depth) {
    const std::size_t slash = path.find('/');
    if (!is_safe_component(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

std::vector<std::byte> encode(const Frame& frame) {
  Writer out;
  out.number(kMagic);
  std::visit([&out](const auto& alternative) { write(out, alternative); }, frame);
  return out.take();
}

tl::expected<Frame, FrameError> parse_frame(std::span<const std::byte> bytes) {
  Reader in(bytes);
  in.check(in.number("magic") == kMagic, "magic");
  Frame frame;
  switch (in.number("kind")) {
    case kHello: frame = read_hello(in); break;
    case kProbes: frame = read_probes(in); break;
    case kFork: frame = read_fork(in); break;
    case kTemplate: frame = read_template(in); break;
    case kPolicy: frame = read_policy(in); break;
    case kLaunch: frame = read_launch(in); break;
    default: in.check(false, "kind");
  }
  in.check(in.at_end(), "end");
  if (in.failed()) return tl::unexpected(in.error());
  return frame;
}

tl::expected<Report, FrameError> parse_report(std::span<const std::byte> bytes) {
  Report report;
  if (bytes.size() != sizeof report) return tl::unexpected(FrameError{bytes.size(), "size"});
  std::memcpy(&report, bytes.data(), sizeof report);
  if (report.kind < Report::Kind::running || report.kind >= Report::Kind::count) {
    return tl::unexpected(FrameError{0, "kind"});
  }
  return report;
}

}  // namespace fixpoint::sandbox::detail
