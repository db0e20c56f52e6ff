#include "server/tokens.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "server/json_reader.h"
#include "server/tenancy.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

std::string hex(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += kDigits[bytes[i] >> 4U];
    out += kDigits[bytes[i] & 15U];
  }
  return out;
}

bool is_hash(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void read_roles(JsonReader& reader, Principal& who) {
  const json* roles = reader.find("roles");
  if (roles == nullptr || !roles->is_array()) return reader.fail("roles", "must be a list of use, review and operate");
  for (const json& role : *roles) {
    if (role == "use") {
      who.use = true;
    } else if (role == "review") {
      who.review = true;
    } else if (role == "operate") {
      who.operate = true;
    } else {
      reader.fail("roles", "must be a list of use, review and operate");
    }
  }
}

void read_limits(JsonReader& reader, Limits& limits) {
  const json* object = reader.find("limits");
  if (object == nullptr) return;
  if (!object->is_object()) return reader.fail("limits", "must be an object");
  JsonReader inner(*object);
  std::optional<std::int64_t> sandbox;
  inner.integer("sessions", limits.sessions, 0, kMostOfALimit);
  inner.integer("connections", limits.connections, 0, kMostOfALimit);
  inner.integer("tokens_per_minute", limits.tokens_per_minute, 1, kMostOfALimit);
  inner.integer("sandbox_seconds_per_minute", sandbox, 1, kMostOfALimit);
  if (sandbox) limits.sandbox_per_minute = std::chrono::seconds(*sandbox);
  if (inner.failed()) reader.fail("limits", inner.error().message);
}

tl::expected<TokenEntry, std::string> read_entry(const json& object) {
  if (!object.is_object()) return tl::unexpected(std::string("must be an object"));
  JsonReader reader(object);
  TokenEntry entry;
  reader.text("id", entry.principal.token_id);
  reader.text("sha256", entry.sha256);
  reader.text("tenant", entry.principal.tenant);
  const std::string& id = entry.principal.token_id;
  if (id.empty() || id.size() > 64) reader.fail("id", "must have 1 to 64 bytes");
  if (!is_hash(entry.sha256)) reader.fail("sha256", "must be 64 hexadecimal digits in lower case");
  if (!is_tenant_name(entry.principal.tenant)) reader.fail("tenant", "must be 1 to 32 of a-z, 0-9 and _");
  read_roles(reader, entry.principal);
  read_limits(reader, entry.principal.limits);
  if (reader.failed()) return tl::unexpected(reader.error().message);
  return entry;
}

json entry_json(const TokenEntry& entry) {
  const Principal& who = entry.principal;
  json roles = json::array();
  if (who.use) roles.push_back("use");
  if (who.review) roles.push_back("review");
  if (who.operate) roles.push_back("operate");
  json limits = json::object();
  if (who.limits.sessions) limits["sessions"] = *who.limits.sessions;
  if (who.limits.connections) limits["connections"] = *who.limits.connections;
  if (who.limits.tokens_per_minute) limits["tokens_per_minute"] = *who.limits.tokens_per_minute;
  if (who.limits.sandbox_per_minute) limits["sandbox_seconds_per_minute"] = who.limits.sandbox_per_minute->count() / 1000;
  return {{"id", who.token_id}, {"sha256", entry.sha256}, {"tenant", who.tenant}, {"roles", std::move(roles)}, {"limits", std::move(limits)}};
}

}  // namespace

tl::expected<TokenSet, std::string> TokenSet::parse(std::string_view text) {
  const auto body = parse_body(text);
  if (!body) return tl::unexpected(body.error().message);
  const auto list = body->find("tokens");
  if (list == body->end() || !list->is_array()) return tl::unexpected(std::string("tokens: must be a list"));
  TokenSet out;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = "tokens[" + std::to_string(i) + "]: ";
    auto entry = read_entry((*list)[i]);
    if (!entry) return tl::unexpected(where + entry.error());
    if (auto added = out.add(*std::move(entry)); !added) return tl::unexpected(where + added.error());
  }
  return out;
}

tl::expected<TokenSet, std::string> TokenSet::read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  in.peek();  // a folder can be opened; an iterator would throw
  if (!in.is_open() || in.bad()) return tl::unexpected("cannot read '" + file.string() + "': " + std::strerror(errno));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  auto tokens = parse(text);
  if (!tokens) return tl::unexpected(file.string() + ": " + tokens.error());
  return tokens;
}

std::string TokenSet::to_json() const {
  json list = json::array();
  for (const auto& [hash, entry] : by_hash_) list.push_back(entry_json(entry));
  return json{{"tokens", std::move(list)}}.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

tl::expected<void, std::string> TokenSet::add(TokenEntry entry) {
  const bool taken = by_hash_.contains(entry.sha256) || std::any_of(by_hash_.begin(), by_hash_.end(), [&](const auto& it) {
                       return it.second.principal.token_id == entry.principal.token_id;
                     });
  if (taken) return tl::unexpected("the id '" + entry.principal.token_id + "' is there already");
  std::string hash = entry.sha256;
  by_hash_.emplace(std::move(hash), std::move(entry));
  return {};
}

std::optional<Principal> TokenSet::find(std::string_view secret) const {
  const auto found = by_hash_.find(hash_secret(secret));
  return found == by_hash_.end() ? std::nullopt : std::optional(found->second.principal);
}

std::string new_secret() {
  std::array<unsigned char, 32> raw{};
  if (RAND_bytes(raw.data(), static_cast<int>(raw.size())) != 1) throw std::runtime_error("the system has no randomness");
  return "fxp_" + hex(raw.data(), raw.size());
}

std::string hash_secret(std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(secret.data(), secret.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) throw std::runtime_error("SHA-256 failed");
  return hex(digest.data(), size);
}

tl::expected<void, std::string> write_tokens(const std::filesystem::path& file, const TokenSet& tokens) {
  const std::string text = tokens.to_json();
  if (const auto again = TokenSet::parse(text); !again) return tl::unexpected(again.error());
  const std::string fresh = file.string() + ".new";
  ::unlink(fresh.c_str());
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return tl::unexpected("cannot write '" + fresh + "': " + std::strerror(errno));
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  ::close(fd);
  std::error_code error;
  if (written) std::filesystem::rename(fresh, file, error);
  if (!written || error) {
    ::unlink(fresh.c_str());
    return tl::unexpected("cannot write '" + file.string() + "'");
  }
  return {};
}

std::optional<std::string_view> bearer(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return std::nullopt;
  const bool is_bearer = std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                                    [](char want, char got) { return want == (got >= 'A' && got <= 'Z' ? got - 'A' + 'a' : got); });
  if (!is_bearer) return std::nullopt;
  const std::string_view secret = authorization.substr(kScheme.size());
  return secret.size() <= 512 ? std::optional(secret) : std::nullopt;
}

}  // namespace fixpoint::server
