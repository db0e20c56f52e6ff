#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/detail/hf_config.h"
#include "engine/detail/json_document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::engine;
  const auto json = detail::parse_json(std::as_bytes(std::span(data, size)), "f");
  if (!json) return 0;
  const auto config = detail::read_hf_config(*json, "f");
  if (config) static_cast<void>(make_rope(config->model));
  return 0;
}
