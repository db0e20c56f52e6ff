#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace fixpoint::server {

/// One entry of a configuration file, as a flag would say it.
struct ConfigEntry {
  std::string flag;                 ///< "--tls-cert" for the key "tls_cert" or "tls-cert"
  std::vector<std::string> values;  ///< one, or one per element of a list; "true" and "false" for truths
  bool operator==(const ConfigEntry&) const = default;
};

/// A JSON object of strings, numbers, truths, and lists of them: {"listen": ["127.0.0.1:8642"], "rounds": 4}. The error is a
/// sentence that names the place.
[[nodiscard]] tl::expected<std::vector<ConfigEntry>, std::string> parse_config(std::string_view json);

}  // namespace fixpoint::server
