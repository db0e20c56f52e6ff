#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace fixpoint::server {

/// What one token may use. Unset: no limit of that kind.
struct Limits {
  std::optional<int> sessions;                  ///< sessions and completions at work at once
  std::optional<int> connections;               ///< open sockets
  std::optional<std::int64_t> tokens_per_minute;  ///< written by models
  std::optional<std::chrono::milliseconds> sandbox_per_minute;
  bool operator==(const Limits&) const = default;
};

/// Who asks, as the server found out from the token; nothing in it comes from the client. A plain value.
struct Principal {
  std::string tenant = "local";  ///< [a-z0-9_]{1,32}: namespace of sessions and of the prefix cache
  std::string token_id;          ///< the token's public name, for logs and limits; empty without a token
  bool use = false;              ///< completions and sessions
  bool review = false;           ///< escalations of the tenant
  bool operate = false;          ///< metrics, and sessions and escalations of every tenant
  Limits limits;
  bool operator==(const Principal&) const = default;
};

/// Who comes over loopback where no tokens are configured: may do everything.
[[nodiscard]] inline Principal local_principal() { return {.use = true, .review = true, .operate = true}; }

}  // namespace fixpoint::server
