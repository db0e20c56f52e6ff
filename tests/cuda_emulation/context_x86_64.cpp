// System V ABI: rbx, rbp and r12-r15 belong to the caller of a function, everything else may be lost at a call.
#include <cstdint>
#include <cstring>

#include "tests/cuda_emulation/context.h"

asm(R"(
.text
.globl fixpoint_switch_context
.type fixpoint_switch_context, @function
fixpoint_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fixpoint_switch_context, .-fixpoint_switch_context
)");

namespace fixpoint::cuda_emulation {

StackPointer make_context(std::byte* stack, std::size_t bytes, void (*entry)()) {
  auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
  // Six registers, the address `ret` jumps to, and one word where a return address would be: at the entry of a function
  // the stack pointer is 8 below a multiple of 16.
  auto* frame = reinterpret_cast<std::uintptr_t*>(top - 8 * sizeof(std::uintptr_t));
  std::memset(frame, 0, 8 * sizeof(std::uintptr_t));
  frame[6] = reinterpret_cast<std::uintptr_t>(entry);
  return frame;
}

}  // namespace fixpoint::cuda_emulation
