// What stands in a request's first line and in headers that are taken apart.
#include <cstdint>
#include <cstdlib>

#include "server/api.h"
#include "server/http.h"
#include "server/json_depth.h"
#include "server/tokens.h"
#include "server/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = parse_target(text)) {
    if (target->path.empty() || target->path.front() != '/' || target->path.find('\0') != std::string::npos) std::abort();
    const RouteMatch match = find_route("GET", target->path);
    if (match.route != nullptr && match.route->method != "GET") std::abort();
  }
  if (const auto trace = parse_traceparent(text); trace && !parse_traceparent(to_traceparent(*trace))) std::abort();
  (void)bearer(text);
  (void)json_depth(text);
  return 0;
}
