#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/completion.h"
#include "server/http.h"
#include "server/services.h"

namespace fixpoint::server {

/// What a route asks of who calls it.
enum class Right : std::uint8_t { nothing, use, review, operate };

/// Done at once, or worked on by the engine.
using Answer = std::variant<HttpResponse, std::unique_ptr<Completion>>;

/// May block (journal, tokeniser): runs on a worker thread. `wake` is for a Completion.
using Handler = Answer (*)(const HttpRequest& request, const Services& services, std::function<void()> wake);

struct Route {
  std::string_view method;
  std::string_view pattern;  ///< "/v1/sessions/{id}": a part in braces stands for any one part
  Right right = Right::use;
  Handler handle = nullptr;
};

/// Every route over HTTP; /acp, which is a WebSocket, is not among them. docs/openapi.json describes the same.
[[nodiscard]] std::span<const Route> routes();

struct RouteMatch {
  const Route* route = nullptr;         ///< null: none
  std::vector<std::string> parameters;
  std::string allowed;                  ///< methods of the path, where only the method is wrong: "GET, POST"
};
[[nodiscard]] RouteMatch find_route(std::string_view method, std::string_view path);

[[nodiscard]] bool has_right(const Principal& who, Right right);

/// Nothing where requests are welcome. `tripped`: the engine's watchdog has, lately.
[[nodiscard]] std::optional<ApiError> why_not_ready(bool tripped, bool draining);

// The handlers, by file.
namespace handlers {
// completions_api.cpp
Answer chat_completions(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer completions(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer models(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer model(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer tokenize(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer detokenize(const HttpRequest& request, const Services& services, std::function<void()> wake);
// state_api.cpp
Answer health(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer ready(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer metrics(const HttpRequest& request, const Services& services, std::function<void()> wake);
// journal_api.cpp
Answer sessions(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer session(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer session_events(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer escalations(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer escalation(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer claim(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer hint(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer submit(const HttpRequest& request, const Services& services, std::function<void()> wake);
Answer decline(const HttpRequest& request, const Services& services, std::function<void()> wake);
}  // namespace handlers

}  // namespace fixpoint::server
