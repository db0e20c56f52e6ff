#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include "tests/cuda_emulation/emulated_stream.h"

namespace fixpoint::cuda_emulation {
namespace {

constexpr std::align_val_t kAlignment{256};
/// Of a launch or a copy in a graph. What a driver takes is its own affair; here it is enough to be noticed.
constexpr std::size_t kGraphNodeBytes = std::size_t{32} << 10U;

struct Device {
  int count = 1;
  std::size_t bytes = std::size_t{4} << 30U;
  std::size_t allocated = 0;
  std::map<const void*, std::size_t> device_memory, pinned;
  std::set<EmulatedStream*> streams;
};

Device& device() {
  static Device only;
  return only;
}

BlockRunner& runner() {
  thread_local BlockRunner own;
  return own;
}

bool any_capture() {
  for (const EmulatedStream* stream : device().streams) {
    if (stream->capture != nullptr) return true;
  }
  return false;
}

void finish_all() {
  for (EmulatedStream* stream : device().streams) stream->finish();
}

bool is_pinned(const void* memory) {
  const auto after = device().pinned.upper_bound(memory);
  if (after == device().pinned.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return static_cast<const std::byte*>(memory) < static_cast<const std::byte*>(start) + bytes;
}

}  // namespace

void EmulatedStream::add(Work work) { (capture != nullptr ? capture->work : pending).push_back(std::move(work)); }

void EmulatedStream::finish() {
  for (const Work& work : std::exchange(pending, {})) work();
}

void launch(dim3 grid, dim3 block, std::size_t shared_bytes, EmulatedStream* stream, std::function<void()> kernel) {
  stream->add([=, kernel = std::move(kernel)] { runner().run(grid, block, shared_bytes, kernel); });
}

std::size_t allocated_bytes() { return device().allocated; }
std::size_t pinned_bytes() {
  std::size_t bytes = 0;
  for (const auto& [start, size] : device().pinned) bytes += size;
  return bytes;
}
void set_device_bytes(std::size_t bytes) { device().bytes = bytes; }
void set_device_count(int count) { device().count = count; }

}  // namespace fixpoint::cuda_emulation

using namespace fixpoint::cuda_emulation;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device().count;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int index) { return index >= 0 && index < device().count ? cudaSuccess : cudaErrorInvalidDevice; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  if (index < 0 || index >= device().count) return cudaErrorInvalidDevice;
  *properties = {};
  std::strcpy(properties->name, "emulated");
  properties->major = 8;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = device().bytes;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = device().bytes;
  *free_bytes = device().bytes - device().allocated;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (any_capture()) return cudaErrorStreamCaptureUnsupported;
  if (bytes > device().bytes - device().allocated) return cudaErrorMemoryAllocation;
  *memory = ::operator new(bytes, kAlignment);
  std::memset(*memory, 0xff, bytes);  // not a number, until somebody writes one
  device().device_memory[*memory] = bytes;
  device().allocated += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const auto found = device().device_memory.find(memory);
  if (found == device().device_memory.end()) return cudaErrorInvalidValue;
  finish_all();
  device().allocated -= found->second;
  device().device_memory.erase(found);
  ::operator delete(memory, kAlignment);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  *memory = ::operator new(bytes, kAlignment);
  device().pinned[*memory] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (device().pinned.erase(memory) == 0) return cudaErrorInvalidValue;
  ::operator delete(memory, kAlignment);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) {
    // Pageable memory is read before the call returns.
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    auto copy = std::make_shared<std::vector<std::byte>>(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes);
    stream->add([=] { std::memcpy(to, copy->data(), bytes); });
  } else {
    stream->add([=] { std::memmove(to, from, bytes); });
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  stream->add([=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream();
  device().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  device().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  stream->finish();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  stream->capture = new EmulatedGraph();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream->capture == nullptr) return cudaErrorInvalidValue;
  *graph = std::exchange(stream->capture, nullptr);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new EmulatedEvent();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->recorded = stream;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->recorded != nullptr && device().streams.contains(event->recorded)) event->recorded->finish();
  event->recorded = nullptr;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const std::size_t bytes = graph->work.size() * kGraphNodeBytes;
  if (bytes > device().bytes - device().allocated) return cudaErrorMemoryAllocation;
  *exec = new EmulatedGraph{graph->work, bytes};
  device().allocated += bytes;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const Work& work : exec->work) stream->add(work);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  device().allocated -= exec->device_bytes;
  delete exec;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
  }
  return "unknown";
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
