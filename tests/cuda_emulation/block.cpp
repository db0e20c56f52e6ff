#include "tests/cuda_emulation/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace fixpoint::cuda_emulation {
namespace {

thread_local BlockRunner* current_runner = nullptr;

// AddressSanitizer must know on which stack we are; without it these are nothing.
#if defined(__SANITIZE_ADDRESS__)
void start_switch(void** save, const void* bottom, std::size_t bytes) { __sanitizer_start_switch_fiber(save, bottom, bytes); }
void finish_switch(void* saved, const void** bottom, std::size_t* bytes) { __sanitizer_finish_switch_fiber(saved, bottom, bytes); }
void forget_stack(const std::byte* stack, std::size_t bytes) { __asan_unpoison_memory_region(stack, bytes); }
#else
void start_switch(void**, const void*, std::size_t) {}
void finish_switch(void*, const void**, std::size_t*) {}
void forget_stack(const std::byte*, std::size_t) {}
#endif

}  // namespace

BlockRunner::BlockRunner() {
  void* memory = mmap(nullptr, kStackBytes * kMaxThreads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stacks_ = static_cast<std::byte*>(memory);
}

BlockRunner::~BlockRunner() { munmap(stacks_, kStackBytes * kMaxThreads); }

BlockRunner& BlockRunner::current() { return *current_runner; }

void BlockRunner::run(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  const std::size_t size = std::size_t{block.x} * block.y * block.z;
  if (size == 0 || size > kMaxThreads) throw std::runtime_error("launch: a block of " + std::to_string(size) + " threads");
  grid_ = grid;
  block_ = block;
  shared_bytes_ = shared_bytes;
  kernel_ = &kernel;
  fault_.clear();
  threads_.assign(size, EmulatedThread{});
  current_runner = this;
  for (block_index_.z = 0; block_index_.z < grid.z; ++block_index_.z) {
    for (block_index_.y = 0; block_index_.y < grid.y; ++block_index_.y) {
      for (block_index_.x = 0; block_index_.x < grid.x; ++block_index_.x) {
        run_block(kernel);
        if (!fault_.empty()) throw std::runtime_error(fault_);
      }
    }
  }
  current_runner = nullptr;
}

void BlockRunner::prepare(EmulatedThread& thread) {
  std::byte* stack = stack_of(thread.id);
  thread.state = EmulatedThread::State::ready;
  thread.context = make_context(stack, kStackBytes, &BlockRunner::enter);
  thread.address_sanitizer_stack = nullptr;
  thread.warp_operations = 0;
  thread.clock = {thread.id, thread.warp, 0, 0};
}

void BlockRunner::run_block(const std::function<void()>&) {
  // What a kernel does not write must not look like a number.
  shared_.assign(shared_bytes_, std::byte{0xff});
  races_.reset(shared_bytes_);
  warps_.assign((threads_.size() + kWarpSize - 1) / kWarpSize, Warp{});
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    EmulatedThread& thread = threads_[i];
    thread.id = static_cast<int>(i);
    thread.lane = thread.id % kWarpSize;
    thread.warp = thread.id / kWarpSize;
    thread.index = {static_cast<unsigned>(i) % block_.x, static_cast<unsigned>(i) / block_.x % block_.y,
                    static_cast<unsigned>(i) / block_.x / block_.y};
    ++warps_[static_cast<std::size_t>(thread.warp)].lanes;
    prepare(thread);
  }
  at_barrier_ = 0;
  alive_ = static_cast<int>(threads_.size());
  running_ = nullptr;
  switch_to(&threads_.front(), false);
  if (alive_ > 0) {  // abandoned: what stands on the stacks is dead
    for (std::size_t i = 0; i < threads_.size(); ++i) forget_stack(stack_of(static_cast<int>(i)), kStackBytes);
  }
}

void BlockRunner::enter() {
  BlockRunner& self = *current_runner;
  finish_switch(nullptr, self.running_->id == 0 && self.caller_stack_bottom_ == nullptr ? &self.caller_stack_bottom_ : nullptr,
                self.caller_stack_bytes_ == 0 ? &self.caller_stack_bytes_ : nullptr);
  (*self.kernel_)();
  self.running_->state = EmulatedThread::State::done;
  --self.alive_;
  EmulatedThread* next = self.next_ready();
  if (next == nullptr && self.alive_ > 0) {
    self.fault(self.at_barrier_ > 0 ? "a barrier that not every thread of the block reaches" : "a warp operation that not every lane reaches");
  }
  self.switch_to(next, true);
}

/// Continues `to`, or the caller of run_block when it is null.
void BlockRunner::switch_to(EmulatedThread* to, bool finished) {
  EmulatedThread* from = running_;
  running_ = to;
  StackPointer* save = from != nullptr ? &from->context : &caller_;
  void** save_sanitizer = finished ? nullptr : from != nullptr ? &from->address_sanitizer_stack : &caller_sanitizer_stack_;
  if (to != nullptr) {
    start_switch(save_sanitizer, stack_of(to->id), kStackBytes);
    fixpoint_switch_context(save, to->context);
  } else {
    start_switch(save_sanitizer, caller_stack_bottom_, caller_stack_bytes_);
    fixpoint_switch_context(save, caller_);
  }
  finish_switch(from != nullptr ? from->address_sanitizer_stack : caller_sanitizer_stack_, nullptr, nullptr);
}

/// In the order of the lanes of the warp, then of the warps.
EmulatedThread* BlockRunner::next_ready() {
  const auto size = static_cast<int>(threads_.size());
  const int first = running_->warp * kWarpSize;
  const int lanes = std::min(kWarpSize, size - first);
  for (int i = 1; i <= lanes; ++i) {
    EmulatedThread& thread = threads_[static_cast<std::size_t>(first + (running_->lane + i) % lanes)];
    if (thread.state == EmulatedThread::State::ready) return &thread;
  }
  for (int i = 0; i < size; ++i) {
    EmulatedThread& thread = threads_[static_cast<std::size_t>((first + lanes + i) % size)];
    if (thread.state == EmulatedThread::State::ready) return &thread;
  }
  return nullptr;
}

void BlockRunner::suspend() {
  EmulatedThread* next = next_ready();
  if (next == nullptr) {
    fault(at_barrier_ > 0 ? "a barrier that not every thread of the block reaches" : "a warp operation that not every lane reaches");
  }
  switch_to(next, false);
}

void BlockRunner::block_barrier() {
  ++running_->clock.block_barriers;
  if (++at_barrier_ < static_cast<int>(threads_.size())) {
    running_->state = EmulatedThread::State::at_block_barrier;
    suspend();
    return;
  }
  at_barrier_ = 0;
  for (EmulatedThread& thread : threads_) thread.state = EmulatedThread::State::ready;
}

void BlockRunner::warp_exchange(WarpOperation operation, std::uint32_t mask, const void* value, std::size_t bytes) {
  EmulatedThread& me = *running_;
  Warp& warp = warps_[static_cast<std::size_t>(me.warp)];
  if (std::popcount(mask) < warp.lanes) fault("a warp operation whose mask leaves lanes out");
  if (warp.arrived > 0 && warp.operation != operation) fault("lanes of one warp meet at different operations");
  warp.operation = operation;
  std::memcpy(warp.given[me.warp_operations++ % 2][static_cast<std::size_t>(me.lane)].data(), value, bytes);
  if (operation == WarpOperation::sync) ++me.clock.warp_barriers;
  if (++warp.arrived < warp.lanes) {
    me.state = EmulatedThread::State::at_warp_operation;
    suspend();
    return;
  }
  warp.arrived = 0;
  const std::size_t first = static_cast<std::size_t>(me.warp) * kWarpSize;
  for (std::size_t i = first; i < first + static_cast<std::size_t>(warp.lanes); ++i) threads_[i].state = EmulatedThread::State::ready;
}

const std::byte* BlockRunner::given(int lane) const {
  const Warp& warp = warps_[static_cast<std::size_t>(running_->warp)];
  return warp.given[(running_->warp_operations - 1) % 2][static_cast<std::size_t>(lane % warp.lanes)].data();
}

void BlockRunner::shared_access(const void* address, std::size_t bytes, Access access) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - shared_.data());
  for (std::size_t word = offset; word < offset + bytes; word += 4) {
    const char* wrong = races_.access(word, access, running_->clock);
    if (wrong != nullptr) fault("shared memory, byte " + std::to_string(word) + ": " + wrong);
  }
}

std::string BlockRunner::where() const {
  const auto text = [](const Index3& i) {
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
  };
  return "block " + text(block_index_) + ", thread " + text(running_->index) + ": ";
}

void BlockRunner::fault(const std::string& what) {
  if (fault_.empty()) fault_ = where() + what;
}

}  // namespace fixpoint::cuda_emulation
