// Private tests of LiveCodeBench: base64, zlib and a pickle of plain text.
#include <string_view>

#include "evals/detail/pickle.h"
#include "evals/detail/rows.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace fixpoint::evals::detail;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)read_pickled_text(bytes);
  if (const auto decoded = decode_base64(bytes)) {
    if (const auto inflated = inflate_zlib(*decoded)) (void)read_pickled_text(*inflated);
  }
  (void)inflate_if_compressed(bytes);
  return 0;
}
