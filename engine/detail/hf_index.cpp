#include "engine/detail/hf_index.h"

#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {

tl::expected<std::set<std::string>, LoadError> shard_names(const Json& index, const std::string& file) {
  using Kind = LoadError::Kind;
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object() || map->empty()) {
    return fail(Kind::missing, file, "field 'weight_map'", "is missing, empty or no object");
  }
  std::set<std::string> names;
  for (const auto& [tensor, shard] : map->items()) {
    const auto* name = shard.is_string() ? &shard.get_ref<const std::string&>() : nullptr;
    if (name == nullptr || name->empty() || name->find('/') != std::string::npos || name->starts_with('.') ||
        name->find('\0') != std::string::npos) {
      return fail(Kind::malformed, file, "field 'weight_map'", "tensor " + shown(tensor) + " has no file name");
    }
    names.insert(*name);
  }
  return names;
}

}  // namespace fixpoint::engine::detail
