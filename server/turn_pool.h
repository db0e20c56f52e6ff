#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fixpoint::server {

/// The threads that turns run on: at most `max_threads`, started as they are needed, and a queue of at most `max_queued`
/// for those that find none free; more are refused. Thread-safe. Destruction waits for what runs; what is queued is dropped.
class TurnPool {
 public:
  TurnPool(std::size_t max_threads, std::size_t max_queued) : max_threads_(max_threads), max_queued_(max_queued) {}
  TurnPool(const TurnPool&) = delete;
  TurnPool& operator=(const TurnPool&) = delete;
  ~TurnPool();

  /// False: the queue is full, or the pool is closed.
  [[nodiscard]] bool add(const std::string& name, std::function<void()> job);
  /// Takes a job back that has not begun. False: it has.
  [[nodiscard]] bool remove(const std::string& name);
  /// Nothing begins any more.
  void close();

 private:
  struct Job {
    std::string name;
    std::function<void()> run;
  };
  void work(const std::stop_token& stop);

  const std::size_t max_threads_, max_queued_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> queue_;
  std::size_t idle_ = 0;
  bool closed_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace fixpoint::server
