#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "server/principal.h"

namespace fixpoint::server {

/// One token as its file has it: the SHA-256 of the secret, never the secret. The secret has 256 random bits, so that a
/// plain hash is as good as a slow one.
struct TokenEntry {
  std::string sha256;  ///< 64 hex digits
  Principal principal;
  bool operator==(const TokenEntry&) const = default;
};

/// The most that a limit may be.
constexpr std::int64_t kMostOfALimit = 1'000'000'000;

/// Who may enter. A plain value; a reload makes another.
class TokenSet {
 public:
  /// {"tokens": [{"id", "sha256", "tenant", "roles", "limits"}]}; an error names the field.
  [[nodiscard]] static tl::expected<TokenSet, std::string> parse(std::string_view json);
  [[nodiscard]] static tl::expected<TokenSet, std::string> read(const std::filesystem::path& file);

  [[nodiscard]] std::string to_json() const;
  /// Error: the id is taken.
  [[nodiscard]] tl::expected<void, std::string> add(TokenEntry entry);
  /// Whose secret this is.
  [[nodiscard]] std::optional<Principal> find(std::string_view secret) const;
  [[nodiscard]] std::size_t size() const { return by_hash_.size(); }

 private:
  std::map<std::string, TokenEntry, std::less<>> by_hash_;
};

/// "fxp_" and 64 hex digits.
[[nodiscard]] std::string new_secret();
[[nodiscard]] std::string hash_secret(std::string_view secret);

/// Replaces the file at once, readable by its owner alone. Refuses a set that could not be read again.
[[nodiscard]] tl::expected<void, std::string> write_tokens(const std::filesystem::path& file, const TokenSet& tokens);

/// The secret in "Bearer fxp_…"; nothing where the header is something else.
[[nodiscard]] std::optional<std::string_view> bearer(std::string_view authorization);

}  // namespace fixpoint::server
