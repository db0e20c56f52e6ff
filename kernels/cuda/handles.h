#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace fixpoint::kernels::cuda {

/// Destroys a handle of the runtime; for unique_ptr, since the handles are pointers.
template <auto Destroy>
struct Destroyer {
  template <class Handle>
  void operator()(Handle* handle) const noexcept {
    static_cast<void>(Destroy(handle));
  }
};

template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;

/// A stream that does not wait for the default one.
class Stream {
 public:
  Stream();
  [[nodiscard]] cudaStream_t get() const { return stream_.get(); }
  void synchronize() const;

 private:
  Owned<cudaStream_t, &cudaStreamDestroy> stream_;
};

/// A point in a stream's work.
class Event {
 public:
  Event();
  void record(const Stream& stream);
  /// Returns at once where nothing was recorded.
  void wait();

 private:
  Owned<cudaEvent_t, &cudaEventDestroy> event_;
};

/// Memory on the device. Grows on request and then loses its contents; the address may change. Where there is no room to grow,
/// what it had is gone, too.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) { reserve(bytes); }
  void reserve(std::size_t bytes);
  /// How often the address has changed.
  [[nodiscard]] int moves() const { return moves_; }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(memory_.get());
  }
  [[nodiscard]] std::byte* release() {
    bytes_ = 0;
    return memory_.release();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { static_cast<void>(cudaFree(memory)); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
  int moves_ = 0;
};

/// Page-locked memory of the host: copies from it do not wait.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::size_t bytes);
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::byte* release() {
    bytes_ = 0;
    return memory_.release();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { static_cast<void>(cudaFreeHost(memory)); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

/// A recorded sequence of launches and copies that is started with one call.
class Graph {
 public:
  /// Records what `work` queues on the stream instead of doing it. `work` must not wait for the stream nor allocate.
  template <class Work>
  static Graph capture(const Stream& stream, const Work& work) {
    begin(stream);
    try {
      work();
    } catch (...) {
      abandon(stream);
      throw;
    }
    return Graph(stream);
  }
  void launch(const Stream& stream) const;

 private:
  explicit Graph(const Stream& stream);
  static void begin(const Stream& stream);
  static void abandon(const Stream& stream) noexcept;

  Owned<cudaGraphExec_t, &cudaGraphExecDestroy> exec_;
};

}  // namespace fixpoint::kernels::cuda
