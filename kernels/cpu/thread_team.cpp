#include "kernels/cpu/thread_team.h"

#include <sched.h>

#include <chrono>

namespace fixpoint::kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough for the serial work between two jobs of a step, short enough to give the core to others when they need it.
constexpr auto kWorkerSpin = std::chrono::microseconds(60);
constexpr auto kCallerSpin = std::chrono::microseconds(30);

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

template <class Condition>
bool spin_until(Clock::duration limit, Condition condition) {
  const auto end = Clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      pause_briefly();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

ThreadTeam::ThreadTeam(int num_threads) {
  const int threads = num_threads > 0 ? num_threads : allowed_cpus();
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i](const std::stop_token& stop) { work(stop, i); });
  }
}

ThreadTeam::~ThreadTeam() {
  for (std::jthread& worker : workers_) worker.request_stop();
  wake_ups_.fetch_add(1);
  wake_ups_.notify_all();
}

void ThreadTeam::run_job(const Job& job) {
  job_ = job;
  unfinished_.store(job.tasks, std::memory_order_relaxed);
  const std::uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32U) + 1;
  ticket_.store(number << 32U | job.tasks);
  if (sleepers_.load() > 0) {
    wake_ups_.fetch_add(1);
    wake_ups_.notify_all();
  }
  work_through(0);
  const auto finished = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (spin_until(kCallerSpin, finished)) return;
  while (const std::uint32_t left = unfinished_.load(std::memory_order_acquire)) unfinished_.wait(left);
}

void ThreadTeam::work_through(int thread) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(ticket) != 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    const Job job = job_;
    job.invoke(job.context, job.tasks - static_cast<std::uint32_t>(ticket), thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadTeam::work(const std::stop_token& stop, int thread) {
  while (!stop.stop_requested()) {
    if (spin_until(kWorkerSpin, [&] { return has_work() || stop.stop_requested(); })) {
      work_through(thread);
    } else {
      sleep_until_work(stop);
    }
  }
}

// A job that starts between the look at the ticket and the wait has seen a sleeper and changed `wake_ups_`.
void ThreadTeam::sleep_until_work(const std::stop_token& stop) {
  const std::uint32_t seen = wake_ups_.load();
  sleepers_.fetch_add(1);
  if (!has_work() && !stop.stop_requested()) wake_ups_.wait(seen);
  sleepers_.fetch_sub(1);
}

}  // namespace fixpoint::kernels::cpu
