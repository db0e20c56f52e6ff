#include "sandbox/detail/broker_process.h"

// The assembler puts the file's bytes into read-only data.
asm(".section .rodata\n"
    ".balign 16\n"
    ".global fixpoint_broker_first\n"
    "fixpoint_broker_first:\n"
    ".incbin \"" FIXPOINT_BROKER_FILE "\"\n"
    ".global fixpoint_broker_last\n"
    "fixpoint_broker_last:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const std::byte fixpoint_broker_first[];
extern const std::byte fixpoint_broker_last[];
}

namespace fixpoint::sandbox::detail {

std::span<const std::byte> embedded_broker() { return {fixpoint_broker_first, fixpoint_broker_last}; }

}  // namespace fixpoint::sandbox::detail
