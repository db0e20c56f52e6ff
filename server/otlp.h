#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <tl/expected.hpp>
#include <vector>

#include "server/metrics.h"
#include "server/trace.h"

namespace fixpoint::server {

struct OtlpOptions {
  std::string endpoint;  ///< "http://HOST:PORT[/v1/traces]" of a collector
  std::string service_name = "fixpoint";
  std::size_t max_waiting = 4'096;  ///< spans; what comes on top is dropped and counted
  std::size_t max_batch = 512;
  std::chrono::milliseconds interval{1'000};
  std::chrono::milliseconds timeout{5'000};
};

/// Sends spans to an OpenTelemetry collector as OTLP/JSON over HTTP, from a thread of its own. Nobody waits for it; a batch
/// that a collector does not take is dropped and counted (fixpoint_trace_spans_total by result).
class OtlpTracer final : public Tracer {
 public:
  /// Error: the endpoint is no address that it can speak to. `metrics` must outlive it.
  [[nodiscard]] static tl::expected<std::unique_ptr<OtlpTracer>, std::string> start(OtlpOptions options, Metrics& metrics);
  ~OtlpTracer() override;  ///< sends what waits, once

  void finish(Span span) override;

 private:
  struct Address {
    std::string host, port, target;
  };
  OtlpTracer(OtlpOptions options, Address address, Metrics& metrics);
  void run(const std::stop_token& stop);
  void send(const std::vector<Span>& spans);

  OtlpOptions options_;
  Address address_;
  Counter& sent_;
  Counter& dropped_;
  Counter& failed_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Span> waiting_;  // guarded by mutex_
  std::jthread thread_;
};

/// The body of an export: {"resourceSpans": [...]}, times as decimal nanoseconds, as the OTLP/JSON encoding has them.
[[nodiscard]] std::string otlp_json(std::span<const Span> spans, const std::string& service_name);

}  // namespace fixpoint::server
