#include "engine/language_model.h"
#include "server/admission.h"
#include "server/api.h"
#include "server/engine_samples.h"
#include "server/metrics.h"

namespace fixpoint::server {

std::optional<ApiError> why_not_ready(bool tripped, bool draining) {
  if (draining) return ApiError{.status = 503, .message = "the server is shutting down", .code = "draining"};
  if (tripped) {
    return ApiError{.status = 503, .message = "the engine stood still although it had work", .code = "watchdog"};
  }
  return std::nullopt;
}

namespace handlers {

Answer health(const HttpRequest&, const Services&, std::function<void()>) { return HttpResponse{.body = R"({"status":"ok"})"}; }

Answer ready(const HttpRequest&, const Services& services, std::function<void()>) {
  const std::uint64_t trips = services.model == nullptr ? 0 : services.model->engine().stats().watchdog_trips;
  const bool tripped = services.recent_trips.seen(trips, RecentTrips::Clock::now());
  if (const auto error = why_not_ready(tripped, services.draining)) return error->response();
  return HttpResponse{.body = R"({"status":"ready"})"};
}

Answer metrics(const HttpRequest&, const Services& services, std::function<void()>) {
  std::vector<Metrics::Sample> samples;
  if (services.model != nullptr) samples = engine_samples(services.model->engine().stats(), services.model_id);
  samples.push_back({.name = "connections", .help = "Open sockets.", .type = "gauge", .value = static_cast<double>(services.admission->connections())});
  samples.push_back({.name = "sessions_running", .help = "Agent sessions and completions at work.", .type = "gauge", .value = static_cast<double>(services.admission->sessions())});
  return HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = services.metrics->text(samples)};
}

}  // namespace handlers

}  // namespace fixpoint::server
