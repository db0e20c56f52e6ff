#pragma once

#include <nlohmann/json.hpp>

#include "server/http.h"

namespace fixpoint::server {

/// Bytes that are no UTF-8 become replacement characters.
[[nodiscard]] inline HttpResponse json_response(const nlohmann::json& body) {
  return {.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

}  // namespace fixpoint::server
