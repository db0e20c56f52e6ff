#pragma once

#include <string>
#include <string_view>

namespace fixpoint::agent::detail {

/// SHA-256 in lower-case hex.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// HMAC-SHA256 (RFC 2104) in lower-case hex.
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);
/// `bytes` random bytes of the operating system, in lower-case hex.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace fixpoint::agent::detail
