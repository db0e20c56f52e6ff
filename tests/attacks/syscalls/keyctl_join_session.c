// @attack joins a session keyring that runs could share
// @expect denied keyctl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_keyctl, 1, "shared"));
}
