#include "sandbox/detail/embedded.h"

// The assembler puts each file's bytes into read-only data, between two symbols.
asm(".section .rodata\n"
    ".balign 16\n"
    "fixpoint_broker_first: .incbin \"" FIXPOINT_BROKER_FILE "\"\n"
    "fixpoint_broker_last: .byte 0\n"
    ".balign 16\n"
    "fixpoint_zygote_library_first: .incbin \"" FIXPOINT_ZYGOTE_LIBRARY "\"\n"
    "fixpoint_zygote_library_last: .byte 0\n"
    "fixpoint_zygote_program_first: .incbin \"" FIXPOINT_ZYGOTE_PROGRAM "\"\n"
    "fixpoint_zygote_program_last: .byte 0\n"
    "fixpoint_node_worker_first: .incbin \"" FIXPOINT_NODE_WORKER "\"\n"
    "fixpoint_node_worker_last: .byte 0\n"
    ".global fixpoint_broker_first, fixpoint_broker_last\n"
    ".global fixpoint_zygote_library_first, fixpoint_zygote_library_last\n"
    ".global fixpoint_zygote_program_first, fixpoint_zygote_program_last\n"
    ".global fixpoint_node_worker_first, fixpoint_node_worker_last\n"
    ".previous\n");

extern "C" {
extern const std::byte fixpoint_broker_first[], fixpoint_broker_last[];
extern const std::byte fixpoint_zygote_library_first[], fixpoint_zygote_library_last[];
extern const std::byte fixpoint_zygote_program_first[], fixpoint_zygote_program_last[];
extern const std::byte fixpoint_node_worker_first[], fixpoint_node_worker_last[];
}

namespace fixpoint::sandbox::detail {

std::span<const std::byte> embedded_broker() { return {fixpoint_broker_first, fixpoint_broker_last}; }
std::span<const std::byte> embedded_zygote_library() {
  return {fixpoint_zygote_library_first, fixpoint_zygote_library_last};
}
std::span<const std::byte> embedded_zygote_program() {
  return {fixpoint_zygote_program_first, fixpoint_zygote_program_last};
}
std::span<const std::byte> embedded_node_worker() { return {fixpoint_node_worker_first, fixpoint_node_worker_last}; }

}  // namespace fixpoint::sandbox::detail
