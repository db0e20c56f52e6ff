#include "server/turn_pool.h"

#include <algorithm>

namespace fixpoint::server {

TurnPool::~TurnPool() {
  close();
  std::vector<std::jthread> threads;
  {
    const std::scoped_lock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
}

bool TurnPool::add(const std::string& name, std::function<void()> job) {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_ || queue_.size() >= max_queued_) return false;
    queue_.push_back({name, std::move(job)});
    if (queue_.size() > idle_ && threads_.size() < max_threads_) {
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }
  changed_.notify_one();
  return true;
}

bool TurnPool::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  return std::erase_if(queue_, [&](const Job& job) { return job.name == name; }) > 0;
}

void TurnPool::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  queue_.clear();
}

void TurnPool::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    const bool found = changed_.wait(lock, stop, [this] { return !queue_.empty(); });
    --idle_;
    if (!found) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job.run();
    job.run = nullptr;  // what it holds is let go before the next one
    lock.lock();
  }
}

}  // namespace fixpoint::server
