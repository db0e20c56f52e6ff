#include "server/config.h"

#include <algorithm>

#include "server/json_reader.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

bool is_key(const std::string& key) {
  return !key.empty() && key.size() <= 64 && key.front() != '-' && std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

/// What a flag would be given; nothing where it is an object, a list or null.
std::optional<std::string> scalar(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

}  // namespace

tl::expected<std::vector<ConfigEntry>, std::string> parse_config(std::string_view text) {
  const auto object = parse_body(text);
  if (!object) return tl::unexpected(object.error().message);
  std::vector<ConfigEntry> out;
  for (const auto& [key, value] : object->items()) {
    if (!is_key(key)) return tl::unexpected("'" + key.substr(0, 64) + "' is no name of a flag");
    ConfigEntry entry{.flag = "--" + key};
    std::replace(entry.flag.begin(), entry.flag.end(), '_', '-');
    const json list = value.is_array() ? value : json::array({value});
    for (const json& it : list) {
      auto given = scalar(it);
      if (!given) return tl::unexpected(key + ": must be a string, a number, a truth or a list of these");
      entry.values.push_back(*std::move(given));
    }
    if (std::any_of(out.begin(), out.end(), [&](const ConfigEntry& it) { return it.flag == entry.flag; })) return tl::unexpected(key + ": is there twice");
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace fixpoint::server
