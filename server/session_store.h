#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace fixpoint::server {

/// One prompt of a conversation: a session of the agent's journal.
struct TurnRecord {
  std::string name;    ///< the session in the journal
  std::string key;     ///< the client's name for the prompt; may be empty
  std::string start;   ///< agent::to_json of the SessionStarted that it begins with; a turn that never began is begun from it
  std::string file;    ///< the edited file, absolute; shown in differences
  std::string before;  ///< its text
  bool specialist = false;    ///< written by the specialist from the start
  bool sealed = false;        ///< another turn followed: it stays as it is for watchers
  std::int64_t events = 0;    ///< of a sealed turn
  std::int64_t updates = 0;   ///< of a sealed turn
};

/// A conversation with a client: what outlives its sockets and this process.
struct SessionRecord {
  std::string id;
  std::string cwd;
  std::string title;
  std::string mode;
  std::string rounds, drafts, feedback, own_tests;  ///< configuration options, as their values' ids
  bool at_work = false;  ///< a turn was accepted and has not ended
  std::vector<TurnRecord> turns;
  std::int64_t version = 0;  ///< of the stored row; put() refuses an older one
  std::chrono::sys_time<std::chrono::milliseconds> updated{};
};

struct StoreError {
  enum class Kind : std::uint8_t { unknown, conflict, io };
  Kind kind = Kind::io;
  std::string detail;
};

/// The conversations of a service: one SQLite file (WAL). Thread-safe; several processes may share it.
class SessionStore {
 public:
  [[nodiscard]] static tl::expected<std::unique_ptr<SessionStore>, StoreError> open(const std::filesystem::path& file);
  ~SessionStore();

  /// Writes a record whose version is the stored one (0: a new one) and raises its version.
  [[nodiscard]] tl::expected<void, StoreError> put(SessionRecord& record);
  [[nodiscard]] tl::expected<SessionRecord, StoreError> get(const std::string& id) const;
  /// The newest first, those created before `cursor` (an id) if one is given; of the tenant that `like` (an id) belongs
  /// to. An empty `cwd` means any.
  [[nodiscard]] tl::expected<std::vector<SessionRecord>, StoreError> list(const std::string& like, const std::string& cwd, int limit,
                                                                          const std::string& cursor) const;
  /// Those that were at work when they were last written.
  [[nodiscard]] tl::expected<std::vector<std::string>, StoreError> at_work() const;

 private:
  struct Impl;
  explicit SessionStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::server
