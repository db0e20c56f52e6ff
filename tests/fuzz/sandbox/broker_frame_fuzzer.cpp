#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "sandbox/detail/frame.h"

// What the parser accepts must encode to the same bytes again, and hold nothing unsafe.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::sandbox::detail;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)parse_report(bytes);
  const auto frame = parse_frame(bytes);
  if (!frame) {
    if (frame.error().offset > size || frame.error().field.empty()) std::abort();
    return 0;
  }
  const auto again = encode(*frame);
  if (again.size() != size || !std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
  if (const auto* launch = std::get_if<LaunchFrame>(&*frame)) {
    for (const FrameFile& file : launch->files) {
      if (!is_safe_path(file.path)) std::abort();
    }
  }
  return 0;
}
