// Bodies of /v1/chat/completions, /v1/completions, /tokenize and /detokenize.
#include <cstdint>
#include <cstdlib>

#include "server/openai.h"

namespace {

using namespace fixpoint::server;

/// What was accepted is within bounds; what was refused says why.
void expect(const tl::expected<CompletionCall, ApiError>& call) {
  if (!call) {
    if (call.error().status != 400 || call.error().message.empty()) std::abort();
    return;
  }
  const bool bounded = call->n >= 1 && call->n <= kMaxChoices && call->stop.size() <= kMaxStops && call->sampling.temperature >= 0 &&
                       call->sampling.top_p > 0 && call->sampling.top_logprobs <= 20 && (!call->max_tokens || *call->max_tokens > 0) &&
                       (call->chat ? !call->messages.empty() : !call->prompts.empty());
  if (!bounded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  expect(parse_chat_call(body));
  expect(parse_completion_call(body));
  (void)parse_tokenize_call(body);
  (void)parse_detokenize_call(body);
  return 0;
}
