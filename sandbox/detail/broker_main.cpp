#include <cstring>

#include "sandbox/detail/broker.h"

// One small static executable with two faces: the broker, and the probe that runs inside a sandbox.
int main(int argc, char** argv) {
  if (argc > 0 && std::strcmp(argv[0], "fixpoint-sandbox-probe") == 0) return fixpoint::sandbox::detail::run_probe();
  return fixpoint::sandbox::detail::run_broker(3);
}
