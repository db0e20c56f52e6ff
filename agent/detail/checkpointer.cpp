#include "agent/detail/checkpointer.h"

#include <system_error>

namespace fixpoint::agent::detail {

namespace {

/// Pages in the log from which on they are moved; SQLite's own figure.
constexpr int kDuePages = 1'000;
/// A log that grows faster than it is moved is moved by who commits, so that it ends somewhere.
constexpr int kMostPages = 16'000;

}  // namespace

Checkpointer::Checkpointer(std::string file, const Database& watched) : file_(std::move(file)) {
  sqlite3_wal_hook(watched.handle(), &Checkpointer::committed, this);  // in the place of SQLite's own, which moves pages at once
}

Checkpointer::~Checkpointer() = default;

int Checkpointer::committed(void* self, sqlite3* watched, const char* name, int pages) {
  if (pages >= kMostPages) (void)sqlite3_wal_checkpoint_v2(watched, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  else if (pages >= kDuePages) static_cast<Checkpointer*>(self)->begin();
  return SQLITE_OK;
}

void Checkpointer::begin() {
  {
    const std::scoped_lock lock(mutex_);
    if (due_) return;
    due_ = true;
    try {
      if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error&) {
      due_ = false;  // no thread today; we are inside SQLite's C, and who commits moves the pages in the end
    }
  }
  due_or_stop_.notify_one();
}

void Checkpointer::work(const std::stop_token& stop) {
  try {
    const Database own(file_);
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (!due_or_stop_.wait(lock, stop, [this] { return due_; })) return;
      }
      (void)sqlite3_wal_checkpoint_v2(own.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
      const std::scoped_lock lock(mutex_);
      due_ = false;
    }
  } catch (const SqliteFailure&) {
    // Nothing is lost: what can't be moved stays in the log, and who commits moves it in the end.
  }
}

}  // namespace fixpoint::agent::detail
