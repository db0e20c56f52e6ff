#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fixpoint::server {

/// Where a piece of work stands in a trace (W3C Trace Context).
struct TraceContext {
  std::string trace_id;  ///< 32 hex digits, not all zero
  std::string span_id;   ///< 16 hex digits, not all zero
  bool sampled = true;
  bool operator==(const TraceContext&) const = default;
};

/// The value of a `traceparent` header or of `_meta.traceparent`; nothing where it is not one.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);
[[nodiscard]] std::string to_traceparent(const TraceContext& context);
/// A trace of its own.
[[nodiscard]] TraceContext new_trace();
/// A new span in the same trace.
[[nodiscard]] TraceContext child_of(const TraceContext& parent);

/// A finished piece of work.
struct Span {
  TraceContext context;
  std::string parent_span_id;  ///< empty: the root
  std::string name;
  std::chrono::system_clock::time_point begin{}, end{};
  std::vector<std::pair<std::string, std::string>> attributes;
  bool failed = false;
};

/// Takes finished spans. Thread-safe; never waits, and drops what it has no room for (counted).
class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void finish(Span span) = 0;
};

}  // namespace fixpoint::server
