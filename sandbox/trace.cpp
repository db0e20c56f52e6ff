#include "sandbox/trace.h"

#include "sandbox/detail/check/conversation.h"
#include "sandbox/detail/check/judge.h"
#include "sandbox/detail/drivers/drivers.h"

#include <algorithm>

namespace fixpoint::sandbox {
namespace {

using detail::Conversation;
using detail::Silence;
using detail::text_at;
using Kind = Value::Kind;

std::int64_t number_at(const Value& record, std::size_t index) {
  const bool there = index < record.items.size() && record.items[index].kind == Kind::integer;
  return there ? std::strtoll(record.items[index].text.c_str(), nullptr, 10) : 0;
}

// Head and tail of a text, with what was left out between them.
std::string ends_of(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const std::size_t head = max_bytes * 2 / 3;
  const std::size_t tail = max_bytes - head;
  return std::string(text.substr(0, head)) + "\n… (" + std::to_string(text.size() - max_bytes) + " bytes left out) …\n" +
         std::string(text.substr(text.size() - tail));
}

Value subject_value(const TraceSubject& subject) {
  if (const auto* call = std::get_if<TracedCall>(&subject)) {
    Value named;
    named.kind = Kind::dict;
    for (const auto& [key, value] : call->named) {
      named.items.push_back(Value::of(key));
      named.items.push_back(value);
    }
    return Value::tuple_of({Value::of("call"), Value::of(call->entry_point), Value::tuple_of(call->arguments), named});
  }
  if (const auto* statement = std::get_if<TracedStatement>(&subject)) {
    return Value::tuple_of({Value::of("statement"), Value::of(statement->text)});
  }
  return Value::tuple_of({Value::of("run")});
}

void take_exception(Trace& trace, const Value& record) {
  TestResult shaped;
  detail::describe_exception(shaped, record, 2000);
  trace.exception = shaped.message;
  trace.frames = std::move(shaped.frames);
}

void take_steps(Trace& trace, const Value& message) {
  const auto first = static_cast<std::size_t>(std::max<std::int64_t>(number_at(message, 1), 0));
  trace.steps = static_cast<std::uint64_t>(std::max<std::int64_t>(number_at(message, 2), 0));
  for (const Value& item : message.items[3].items) {
    if (item.items.size() != 6) continue;
    auto& steps = trace.first.size() < first ? trace.first : trace.last;
    TraceStep& step = steps.emplace_back();
    step.event = text_at(item, 0);
    step.line = number_at(item, 1);
    step.depth = number_at(item, 2);
    step.function = text_at(item, 3);
    step.text = text_at(item, 4);
    for (const Value& pair : item.items[5].items) step.changed.emplace_back(text_at(pair, 0), text_at(pair, 1));
  }
  trace.result = text_at(message, 4);
  if (message.items[5].kind == Kind::tuple) take_exception(trace, message.items[5]);
  trace.limit = text_at(message, 6);
}

Trace trace_python(Sandbox& sandbox, const Program& program, const TraceSubject& subject, const TraceOptions& options, std::stop_token stop) {
  Trace trace;
  Job job;
  job.language = Language::python;
  job.source = std::string(detail::drivers::python_driver()) + "\n" + std::string(detail::drivers::python_tracer()) + "\ntrace_main()\n";
  job.limits = options.limits;
  job.overflow = Overflow::discard;
  detail::add_files(job, program);
  const auto* run = std::get_if<TracedRun>(&subject);
  const auto deadline = std::chrono::steady_clock::now() + options.limits.wall + std::chrono::seconds(2);
  Conversation line(sandbox, std::move(job), 4u << 20, std::move(stop));
  const double seconds = std::chrono::duration<double>(options.limits.cpu).count() * 0.9;
  const bool sent = line.send(
      Value::tuple_of({Value::of("trace"), Value::of(program.source), subject_value(subject), Value::of(run ? run->input : std::string{}),
                       Value::of(static_cast<std::int64_t>(options.first_steps)), Value::of(static_cast<std::int64_t>(options.last_steps)),
                       Value::of(static_cast<std::int64_t>(options.value_bytes)), Value::of(seconds)}),
      deadline);
  const auto message = sent ? line.receive(deadline) : tl::expected<Value, Silence>(tl::unexpected(Silence::ended));
  const bool shaped = message && message->kind == Kind::tuple && message->items.size() == 7 && text_at(*message, 0) == "trace";
  trace.verdict = line.finish(!shaped);
  if (shaped) {
    take_steps(trace, *message);
  } else {
    trace.limit = detail::limit_of(trace.verdict.outcome);
    trace.error = "the program ended before its trace did: " + describe(trace.verdict.outcome);
    trace.report = ends_of(trace.verdict.standard_error.bytes, options.report_bytes);
  }
  return trace;
}

const std::vector<std::string>& sanitizer_flags() {
  static const std::vector<std::string> flags = {"-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize=object-size",
                                                 "-fno-sanitize-recover=undefined"};
  return flags;
}

// The report names the file that the judge made; people know theirs.
std::string without_noise(std::string_view report) {
  std::string out;
  for (std::size_t at = 0; at < report.size();) {
    const auto end = std::min(report.find('\n', at), report.size());
    const auto line = report.substr(at, end - at);
    at = end + 1;
    const bool shadow = line.find("Shadow byte") != line.npos;
    if (shadow) break;  // the map of memory behind it says nothing to a reader
    if (line.find("HINT:") != line.npos) continue;
    out.append(line).append("\n");
  }
  return out;
}

// Frames "#0 0x… in main /box/main.cpp:7:3" as values.
std::vector<SourceFrame> frames_of(std::string_view report) {
  std::vector<SourceFrame> frames;
  for (std::size_t at = 0; at < report.size() && frames.size() < 20;) {
    const auto end = std::min(report.find('\n', at), report.size());
    const auto line = report.substr(at, end - at);
    at = end + 1;
    const auto first = line.find_first_not_of(' ');
    if (first == line.npos || line[first] != '#') {
      if (!frames.empty()) break;  // the first stack only
      continue;
    }
    const auto in = line.find(" in ");
    const auto file = line.rfind(' ');
    const auto colon = line.find(':', file == line.npos ? 0 : file);
    if (in == line.npos || file == line.npos || colon == line.npos || file <= in + 3) continue;
    SourceFrame frame;
    frame.function = std::string(line.substr(in + 4, file - in - 4));
    std::string_view path = line.substr(file + 1, colon - file - 1);
    path = path.substr(path.rfind('/') + 1);
    frame.file = std::string(path);
    frame.line = std::strtoll(std::string(line.substr(colon + 1)).c_str(), nullptr, 10);
    if (path.starts_with("main.") || path.starts_with("candidate.")) frames.push_back(std::move(frame));
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

void take_report(Trace& trace, const TraceOptions& options) {
  trace.limit = detail::limit_of(trace.verdict.outcome);
  if (std::holds_alternative<CompileError>(trace.verdict.outcome)) trace.error = "it does not compile";
  trace.report = ends_of(without_noise(trace.verdict.standard_error.bytes), options.report_bytes);
  trace.frames = frames_of(trace.verdict.standard_error.bytes);
  if (!trace.verdict.ok() && trace.limit.empty()) trace.exception = describe(trace.verdict.outcome);
}

Trace trace_native(Sandbox& sandbox, const Program& program, const TraceSubject& subject, const TraceOptions& options, std::stop_token stop) {
  Trace trace;
  Job job;
  const auto* call = std::get_if<TracedCall>(&subject);
  if (call && program.language == Language::cpp) {
    job = *detail::driver_job(program, call->entry_point, options.limits);
  } else if (const auto* run = std::get_if<TracedRun>(&subject)) {
    job.language = program.language;
    job.source = program.source;
    job.input = run->input;
    job.limits = options.limits;
    job.overflow = Overflow::discard;
    detail::add_files(job, program);
  } else {
    trace.error = "no trace of a statement or call in this language";
    return trace;
  }
  job.compile_flags = sanitizer_flags();
  job.shared_libraries = true;
  job.environment = {{"ASAN_OPTIONS", "detect_leaks=0:color=never:print_legend=0:fast_unwind_on_malloc=0:exitcode=86"},
                     {"UBSAN_OPTIONS", "print_stacktrace=1:color=never"}};
  job.needs_proc = true;
  job.limits.memory_bytes = std::max<std::uint64_t>(job.limits.memory_bytes, 1ULL << 30);  // the shadow is memory too
  if (!call) {
    trace.verdict = sandbox.run(job, stop);
    take_report(trace, options);
    return trace;
  }
  const auto deadline = std::chrono::steady_clock::now() + options.limits.wall + std::chrono::minutes(2);
  Conversation line(sandbox, std::move(job), detail::max_message_bytes, std::move(stop));
  Value named;
  named.kind = Kind::dict;
  auto answer = detail::load(line, program, "", false, deadline);
  if (answer) answer = line.ask("call", {Value::of(call->entry_point), Value::tuple_of(call->arguments), named, Value::of(false)}, deadline);
  trace.verdict = line.finish(!answer || line.end(deadline));
  take_report(trace, options);
  if (answer && answer->raised) take_exception(trace, answer->value);
  if (answer && !answer->raised) trace.result = to_text(answer->value, options.value_bytes);
  return trace;
}

Trace trace_javascript(Sandbox& sandbox, const Program& program, const TracedCall& call, const TraceOptions& options, std::stop_token stop) {
  Trace trace;
  const auto deadline = std::chrono::steady_clock::now() + options.limits.wall + std::chrono::seconds(2);
  Conversation line(sandbox, *detail::driver_job(program, call.entry_point, options.limits), detail::max_message_bytes, std::move(stop));
  Value named;
  named.kind = Kind::dict;
  auto answer = detail::load(line, program, "", false, deadline);
  if (answer && !answer->raised) {
    answer = line.ask("call", {Value::of(call.entry_point), Value::tuple_of(call.arguments), named, Value::of(false)}, deadline);
  }
  trace.verdict = line.finish(!answer || line.end(deadline));
  trace.limit = detail::limit_of(trace.verdict.outcome);
  if (!answer) {
    trace.exception = describe(trace.verdict.outcome);
    trace.report = ends_of(trace.verdict.standard_error.bytes, options.report_bytes);
  } else if (answer->raised) {
    take_exception(trace, answer->value);
    trace.report = trace.exception + "\n";
    for (auto frame = trace.frames.rbegin(); frame != trace.frames.rend(); ++frame) {
      trace.report += "    at " + frame->function + " (" + frame->file + ":" + std::to_string(frame->line) + ")  " + frame->text + "\n";
    }
  } else {
    trace.result = to_text(answer->value, options.value_bytes);
  }
  return trace;
}

std::string step_text(const TraceStep& step) {
  std::string out(static_cast<std::size_t>(std::clamp<std::int64_t>(step.depth, 0, 20)) * 2, ' ');
  if (step.event == "call") {
    out += "call " + step.function + '(';
  } else if (step.event == "line") {
    out += "line " + std::to_string(step.line) + ": " + step.text;
    if (!step.changed.empty()) out += "    # ";
  }
  bool first = true;
  for (const auto& [variable, text] : step.changed) {
    if (!first) out += ", ";
    first = false;
    if (step.event == "return") {
      out += "return " + text;
    } else if (step.event == "raise") {
      out += "raise " + text;
    } else {
      out += variable + " = " + text;
    }
  }
  return out + (step.event == "call" ? ")\n" : "\n");
}

}  // namespace

Trace trace(Sandbox& sandbox, const Program& program, const TraceSubject& subject, const TraceOptions& options, std::stop_token stop) {
  switch (program.language) {
    case Language::python: return trace_python(sandbox, program, subject, options, std::move(stop));
    case Language::c:
    case Language::cpp: return trace_native(sandbox, program, subject, options, std::move(stop));
    case Language::javascript:
      if (const auto* call = std::get_if<TracedCall>(&subject)) return trace_javascript(sandbox, program, *call, options, std::move(stop));
      break;
    default: break;
  }
  Trace trace;
  const auto* run = std::get_if<TracedRun>(&subject);
  if (!run) {
    trace.error = "no trace of a statement or call in this language";
    return trace;
  }
  Job job{.language = program.language, .source = program.source, .input = run->input, .limits = options.limits};
  job.overflow = Overflow::discard;
  detail::add_files(job, program);
  trace.verdict = sandbox.run(job, std::move(stop));
  trace.limit = detail::limit_of(trace.verdict.outcome);
  trace.report = ends_of(trace.verdict.standard_error.bytes, options.report_bytes);
  if (!trace.verdict.ok() && trace.limit.empty()) trace.exception = describe(trace.verdict.outcome);
  return trace;
}

std::string to_text(const Trace& trace, std::size_t max_bytes) {
  std::string out;
  for (const TraceStep& step : trace.first) out += step_text(step);
  const std::uint64_t shown = trace.first.size() + trace.last.size();
  if (trace.steps > shown) out += "… (" + std::to_string(trace.steps - shown) + " steps left out) …\n";
  for (const TraceStep& step : trace.last) out += step_text(step);
  if (!trace.result.empty()) out += "result: " + trace.result + "\n";
  if (!trace.exception.empty() && trace.report.empty()) {
    for (const SourceFrame& frame : trace.frames) {
      out += "at line " + std::to_string(frame.line) + " in " + frame.function + ": " + frame.text + "\n";
    }
    out += trace.exception + "\n";
  }
  out += trace.report;
  if (!trace.limit.empty()) out += "limit: " + trace.limit + "\n";
  if (!trace.error.empty()) out += trace.error + "\n";
  return ends_of(out, max_bytes);
}

}  // namespace fixpoint::sandbox
