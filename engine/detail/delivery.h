#pragma once

#include <mutex>
#include <utility>

#include "engine/request.h"

namespace fixpoint::engine::detail {

/// The way of a request's outputs to its caller. After `close` the callback is neither running nor called again, except
/// when `close` is called from inside the callback.
class Delivery {
 public:
  explicit Delivery(OnOutput on_output) : on_output_(std::move(on_output)) {}

  /// False when the callback threw.
  bool deliver(Output output) {
    OnOutput ended;  // destroyed after the lock is free: it may own anything
    const std::lock_guard lock(mutex_);
    if (closed_) return true;
    bool fine = true;
    calling_ = true;
    try {
      on_output_(std::move(output));
    } catch (...) {
      fine = false;
    }
    calling_ = false;
    if (closed_) ended = std::move(on_output_);
    return fine;
  }

  void close() {
    OnOutput ended;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (!calling_) ended = std::move(on_output_);
  }

 private:
  std::recursive_mutex mutex_;  // recursive: the callback may close its own delivery
  bool calling_ = false;        // seen true under the lock only by the thread that is in the callback
  bool closed_ = false;
  OnOutput on_output_;
};

}  // namespace fixpoint::engine::detail
