#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "server/acp.h"
#include "server/prompt_task.h"

namespace {

using namespace fixpoint::server;

void make_tasks(const acp::Prompt& prompt) {
  PromptText text{.language = prompt.language, .function = prompt.function, .file = prompt.file};
  for (const acp::Block& block : prompt.blocks) {
    if (const auto* said = std::get_if<acp::TextBlock>(&block)) text.message += said->text;
    if (const auto* resource = std::get_if<acp::ResourceBlock>(&block)) {
      text.files.push_back({acp::path_of_uri(resource->uri).value_or(resource->uri), resource->text});
      (void)test_paths(text.files.back().path);
    }
  }
  const auto task = make_task(text);
  if (task && fixpoint::agent::validate(task->task)) std::abort();
}

}  // namespace

/// A JSON value as the parameters of every method.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = jsonrpc::Json::parse(std::string_view(reinterpret_cast<const char*>(data), size), nullptr, false);
  if (json.is_discarded()) return 0;
  (void)acp::parse_initialize(json);
  (void)acp::parse_authenticate(json);
  (void)acp::parse_new_session(json);
  (void)acp::parse_open_session(json);
  (void)acp::parse_list_sessions(json);
  (void)acp::parse_session_only(json);
  (void)acp::parse_set_mode(json);
  (void)acp::parse_set_config(json);
  (void)acp::parse_cancel_request(json);
  (void)acp::parse_permission(json);
  (void)acp::parse_file_content(json);
  if (const auto prompt = acp::parse_prompt(json)) make_tasks(*prompt);
  return 0;
}
