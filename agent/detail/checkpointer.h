#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "agent/detail/sqlite.h"

namespace fixpoint::agent::detail {

/// Moves what was committed from a database's write-ahead log into the database, on a thread and a connection of its own: a
/// commit that does it itself keeps everybody waiting for the disk, now and then. The watched connection must die first.
class Checkpointer {
 public:
  /// `watched` is a connection to `file` in WAL mode. Throws SqliteFailure.
  Checkpointer(std::string file, const Database& watched);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

 private:
  static int committed(void* self, sqlite3* watched, const char* name, int pages);
  void begin();
  void work(const std::stop_token& stop);

  const std::string file_;
  std::mutex mutex_;
  std::condition_variable_any due_or_stop_;
  bool due_ = false;
  std::jthread thread_;  ///< from the first time that there is something to move
};

}  // namespace fixpoint::agent::detail
