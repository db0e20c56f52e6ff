#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/scripted_generator.h"
#include "agent/task.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto task = parse_task_json(text)) {
    const auto again = parse_task_json(to_json(*task));
    if (!again || !(*again == *task)) std::abort();
  }
  (void)parse_script(text);
  return 0;
}
