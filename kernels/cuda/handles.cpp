#include "kernels/cuda/handles.h"

#include "kernels/cuda/error.h"

namespace fixpoint::kernels::cuda {

Stream::Stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
}

void Stream::synchronize() const { check(cudaStreamSynchronize(get()), "cudaStreamSynchronize"); }

Event::Event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  event_.reset(event);
}

void Event::record(const Stream& stream) { check(cudaEventRecord(event_.get(), stream.get()), "cudaEventRecord"); }

void Event::wait() { check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize"); }

void DeviceMemory::reserve(std::size_t bytes) {
  if (bytes <= bytes_ && memory_ != nullptr) return;
  ++moves_;
  memory_.reset();  // first: there may not be room for both
  bytes_ = 0;
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes > 0 ? bytes : 1), "cudaMalloc");
  memory_.reset(static_cast<std::byte*>(memory));
  bytes_ = bytes;
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  memory_.reset(static_cast<std::byte*>(memory));
}

Graph::Graph(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  const Owned<cudaGraph_t, &cudaGraphDestroy> owned(graph);
  cudaGraphExec_t exec = nullptr;
  check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  exec_.reset(exec);
}

void Graph::begin(const Stream& stream) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

void Graph::abandon(const Stream& stream) noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess && graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
}

void Graph::launch(const Stream& stream) const { check(cudaGraphLaunch(exec_.get(), stream.get()), "cudaGraphLaunch"); }

}  // namespace fixpoint::kernels::cuda
