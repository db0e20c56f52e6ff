#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace fixpoint::agent::detail {

/// The value that `text` is. Error: "not valid JSON", and from which byte on (the first is 1).
[[nodiscard]] inline tl::expected<nlohmann::json, std::string> parse_json(std::string_view text, const nlohmann::json::parser_callback_t& callback = nullptr) {
  try {
    return nlohmann::json::parse(text, callback);
  } catch (const nlohmann::json::parse_error& error) {
    return tl::unexpected("not valid JSON: fault at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    return tl::unexpected(std::string("not valid JSON: a number out of range"));
  }
}

}  // namespace fixpoint::agent::detail
