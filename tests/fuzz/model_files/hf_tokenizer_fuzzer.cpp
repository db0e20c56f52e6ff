#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "engine/detail/hf_tokenizer.h"
#include "engine/detail/json_document.h"
#include "engine/detail/stop_tokens.h"
#include "engine/tokenizer.h"

/// What the reader accepts, the tokenizer must take too, or refuse.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::engine;
  const auto json = detail::parse_json(std::as_bytes(std::span(data, size)), "f");
  if (!json) return 0;
  auto spec = detail::read_tokenizer_json(*json, "f");
  if (!spec) return 0;
  detail::add_stop_tokens(*spec);
  const auto tokenizer = Tokenizer::build(std::move(*spec), "f");
  if (tokenizer) static_cast<void>(tokenizer->encode("a ab\n12 <tool>", Tokenizer::ControlTokens::parse));
  return 0;
}
