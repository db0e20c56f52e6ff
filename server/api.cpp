#include "server/api.h"

#include <array>
#include <optional>

namespace fixpoint::server {
namespace {

constexpr std::array kRoutes{
    Route{"POST", "/v1/chat/completions", Right::use, handlers::chat_completions},
    Route{"POST", "/v1/completions", Right::use, handlers::completions},
    Route{"GET", "/v1/models", Right::use, handlers::models},
    Route{"GET", "/v1/models/{id}", Right::use, handlers::model},
    Route{"POST", "/tokenize", Right::use, handlers::tokenize},
    Route{"POST", "/detokenize", Right::use, handlers::detokenize},
    Route{"GET", "/health", Right::nothing, handlers::health},
    Route{"GET", "/ready", Right::nothing, handlers::ready},
    Route{"GET", "/metrics", Right::operate, handlers::metrics},
    Route{"GET", "/v1/sessions", Right::use, handlers::sessions},
    Route{"GET", "/v1/sessions/{id}", Right::use, handlers::session},
    Route{"GET", "/v1/sessions/{id}/events", Right::use, handlers::session_events},
    Route{"GET", "/v1/escalations", Right::review, handlers::escalations},
    Route{"GET", "/v1/escalations/{id}", Right::review, handlers::escalation},
    Route{"POST", "/v1/escalations/{id}/claim", Right::review, handlers::claim},
    Route{"POST", "/v1/escalations/{id}/hint", Right::review, handlers::hint},
    Route{"POST", "/v1/escalations/{id}/submit", Right::review, handlers::submit},
    Route{"POST", "/v1/escalations/{id}/decline", Right::review, handlers::decline},
};

std::string_view next_part(std::string_view& path) {
  path.remove_prefix(1);  // its '/'
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

/// What stands at the braces; nothing where the path is another.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> parameters;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = next_part(pattern), given = next_part(path);
    if (wanted.starts_with('{')) {
      if (given.empty()) return std::nullopt;
      parameters.emplace_back(given);
    } else if (wanted != given) {
      return std::nullopt;
    }
  }
  return pattern.empty() && path.empty() ? std::optional(std::move(parameters)) : std::nullopt;
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

RouteMatch find_route(std::string_view method, std::string_view path) {
  RouteMatch found;
  for (const Route& route : kRoutes) {
    auto parameters = match(route.pattern, path);
    if (!parameters) continue;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) {
      return {.route = &route, .parameters = *std::move(parameters)};
    }
    found.allowed += (found.allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  return found;
}

bool has_right(const Principal& who, Right right) {
  switch (right) {
    case Right::nothing: return true;
    case Right::use: return who.use || who.operate;
    case Right::review: return who.review || who.operate;
    case Right::operate: return who.operate;
  }
  return false;
}

}  // namespace fixpoint::server
