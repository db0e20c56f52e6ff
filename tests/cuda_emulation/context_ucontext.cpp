// For processors without a context switch of our own: slower, since it saves the signal mask.
#include <ucontext.h>

#include "tests/cuda_emulation/context.h"

namespace fixpoint::cuda_emulation {

// A StackPointer is a ucontext_t here. It lives at the low end of the context's stack, or, for the thread that runs the
// grid, in the thread's own storage.
extern "C" void fixpoint_switch_context(StackPointer* from, StackPointer to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

StackPointer make_context(std::byte* stack, std::size_t bytes, void (*entry)()) {
  auto* context = reinterpret_cast<ucontext_t*>(stack);
  getcontext(context);
  context->uc_link = nullptr;
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  makecontext(context, entry, 0);
  return context;
}

}  // namespace fixpoint::cuda_emulation
