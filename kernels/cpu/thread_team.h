#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace fixpoint::kernels::cpu {

/// A fixed set of threads that works through numbered tasks. Tasks are handed out one by one from a shared counter, and
/// the caller works too: a thread that has lost its core delays the one task it holds, not the job. Waiting threads
/// spin for some microseconds, then sleep. One thread calls `run` at a time.
class ThreadTeam {
 public:
  /// `num_threads` counts the caller; 0: as many as this process may run on.
  explicit ThreadTeam(int num_threads);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  [[nodiscard]] int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, thread) for every task in 0..tasks, thread in 0..size(), and returns when all are done. The body
  /// must not throw. A job of one task runs on the caller alone.
  template <class Body>
  void run(std::int64_t tasks, const Body& body) {
    if (tasks <= 1 || workers_.empty()) {
      for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
      return;
    }
    run_job({[](const void* context, std::int64_t task, int thread) { (*static_cast<const Body*>(context))(task, thread); },
             &body, static_cast<std::uint32_t>(tasks)});
  }

 private:
  struct Job {
    void (*invoke)(const void* context, std::int64_t task, int thread) = nullptr;
    const void* context = nullptr;
    std::uint32_t tasks = 0;
  };

  void run_job(const Job& job);
  void work(const std::stop_token& stop, int thread);
  void work_through(int thread);
  void sleep_until_work(const std::stop_token& stop);
  [[nodiscard]] bool has_work() const { return static_cast<std::uint32_t>(ticket_.load()) != 0; }

  Job job_;
  /// Job number in the high half, tasks not yet handed out in the low half. Who takes a task by lowering it knows that
  /// this job cannot end before the task does, so `job_` is stable.
  alignas(64) std::atomic<std::uint64_t> ticket_ = 0;
  alignas(64) std::atomic<std::uint32_t> unfinished_ = 0;
  alignas(64) std::atomic<std::uint32_t> wake_ups_ = 0;
  std::atomic<int> sleepers_ = 0;
  std::vector<std::jthread> workers_;
};

/// CPUs that this process may run on.
[[nodiscard]] int allowed_cpus();

}  // namespace fixpoint::kernels::cpu
