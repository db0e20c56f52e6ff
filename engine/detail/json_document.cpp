#include "engine/detail/json_document.h"

#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/detail/fail.h"
#include "engine/detail/mapped_file.h"

namespace fixpoint::engine::detail {

using Kind = LoadError::Kind;

tl::expected<Json, LoadError> parse_json(std::span<const std::byte> text, const std::string& file, DuplicateKeys duplicates) {
  const auto* begin = reinterpret_cast<const char*>(text.data());
  std::unordered_set<std::string> keys;
  std::optional<std::string> twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1 && !keys.insert(value.get_ref<const std::string&>()).second) {
      twice = value.get<std::string>();
    }
    return true;
  };
  try {
    auto json = duplicates == DuplicateKeys::refuse ? Json::parse(begin, begin + text.size(), watch)
                                                    : Json::parse(begin, begin + text.size());
    if (twice) return fail(Kind::malformed, file, "key " + shown(*twice), "is there twice");
    return json;
  } catch (const Json::parse_error& error) {
    return fail(Kind::malformed, file, at_offset(error.byte), "is no valid JSON");
  } catch (const Json::exception&) {  // a number outside the range of double
    return fail(Kind::malformed, file, "JSON", "holds a value that cannot be read");
  }
}

tl::expected<Json, LoadError> read_json_object(const std::filesystem::path& path, std::size_t most_bytes) {
  const auto mapped = MappedFile::open(path);
  if (!mapped) return tl::unexpected(mapped.error());
  if (mapped->bytes().size() > most_bytes) {
    return fail(Kind::malformed, path.string(), "size",
                std::to_string(mapped->bytes().size()) + " bytes are more than the " + std::to_string(most_bytes) + " it may have");
  }
  auto json = parse_json(mapped->bytes(), path.string());
  if (json && !json->is_object()) return fail(Kind::malformed, path.string(), at_offset(0), "is no JSON object");
  return json;
}

}  // namespace fixpoint::engine::detail
