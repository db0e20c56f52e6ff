#pragma once

#include <cstddef>

namespace fixpoint::cuda_emulation {

/// Where a suspended thread of control goes on: its stack pointer.
using StackPointer = void*;

/// Stores the running context in `*from` and continues `to`. Keeps callee-saved registers; no system call.
extern "C" void fixpoint_switch_context(StackPointer* from, StackPointer to);

/// A context that calls `entry` on the stack [stack, stack + bytes). `entry` must never return.
[[nodiscard]] StackPointer make_context(std::byte* stack, std::size_t bytes, void (*entry)());

}  // namespace fixpoint::cuda_emulation
