#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "server/acp_bridge_book.h"

/// Lines; the first byte of each says whose it is: 'e' the editor's, 's' the server's, anything else a cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fixpoint::server::AcpBridgeBook book;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with('e')) {
      (void)book.from_editor(line.substr(1));
    } else if (line.starts_with('s')) {
      (void)book.from_server(line.substr(1));
    } else {
      (void)book.disconnected();
      (void)book.reconnected();
    }
  }
  return 0;
}
