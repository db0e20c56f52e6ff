#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "server/jsonrpc.h"

/// Any bytes; what is a message is the same message when it is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto message = jsonrpc::parse(text);
  if (!message) {
    const std::string refusal = jsonrpc::error(message.error().id, message.error().error);
    if (!jsonrpc::parse(refusal)) std::abort();
    return 0;
  }
  std::string again;
  if (const auto* request = std::get_if<jsonrpc::Request>(&*message)) {
    again = request->id ? jsonrpc::request(*request->id, request->method, request->params) : jsonrpc::notification(request->method, request->params);
  } else {
    const auto& response = std::get<jsonrpc::Response>(*message);
    again = response.result ? jsonrpc::result(response.id, *response.result) : jsonrpc::error(response.id, response.result.error());
  }
  const auto twice = jsonrpc::parse(again);
  if (!twice || twice->index() != message->index()) std::abort();
  return 0;
}
