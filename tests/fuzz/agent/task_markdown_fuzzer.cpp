#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/prompt.h"
#include "agent/task.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto task = parse_task_markdown(text)) {
    if (validate(*task)) std::abort();
    (void)task_message(*task);
    const auto again = parse_task_json(to_json(*task));
    if (again && again->visible.size() < task->visible.size()) std::abort();
  }
  (void)parse_task_source(text, "python");
  (void)parse_task_source(text, "cpp");
  return 0;
}
