// What a hostile driver may write: cut into messages, read, compared, shown.
#include "sandbox/detail/check/judge.h"
#include "sandbox/detail/check/message.h"
#include "sandbox/equality.h"

#include <cstdint>
#include <cstdlib>

using namespace fixpoint::sandbox;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  detail::MessageReader reader(1 << 16);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t half = size / 2;
  std::optional<Value> last;
  for (const auto part : {bytes.substr(0, half), bytes.substr(half)}) {
    reader.feed(part);
    while (true) {
      auto message = reader.next();
      if (!message || !*message) break;
      const std::string wire = encode(**message);
      const auto again = decode(wire);
      if (!again || encode(*again) != wire) std::abort();
      if (to_text(**message, 100).size() > 300) std::abort();
      if (last) (void)equal(**message, *last, {.absolute_tolerance = 1e-6, .lists_equal_tuples = true, .evalplus = true});
      TestResult shaped;
      detail::describe_exception(shaped, **message, 500);
      last = **message;
      (void)detail::parse_answer(std::move(**message));
    }
  }
  return 0;
}
