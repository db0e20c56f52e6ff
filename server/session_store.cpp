#include "server/session_store.h"

#include <sqlite3.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace fixpoint::server {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

/// What SQLite says went wrong; becomes a value at the store's public functions.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    if (sqlite3_prepare_v2(db, sql, -1, &it_, nullptr) != SQLITE_OK) throw Failure(sqlite3_errmsg(db));
  }
  ~Statement() { sqlite3_finalize(it_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(it_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t number) {
    sqlite3_bind_int64(it_, ++bound_, number);
    return *this;
  }
  bool step() {
    const int code = sqlite3_step(it_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) throw Failure(sqlite3_errmsg(db_));
    return code == SQLITE_ROW;
  }
  [[nodiscard]] std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(it_, column));
    return data == nullptr ? std::string() : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(it_, column)));
  }
  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(it_, column); }

 private:
  sqlite3* db_;
  sqlite3_stmt* it_ = nullptr;
  int bound_ = 0;
};

std::string body_of(const SessionRecord& record) {
  Json turns = Json::array();
  for (const TurnRecord& turn : record.turns) {
    turns.push_back({{"name", turn.name}, {"key", turn.key}, {"start", turn.start}, {"file", turn.file}, {"before", turn.before},
                     {"specialist", turn.specialist}, {"sealed", turn.sealed}, {"events", turn.events}, {"updates", turn.updates}});
  }
  const Json body{{"title", record.title}, {"mode", record.mode}, {"rounds", record.rounds}, {"drafts", record.drafts},
                  {"feedback", record.feedback}, {"own_tests", record.own_tests}, {"turns", turns}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Columns: id, cwd, body, version, updated_ms, at_work.
SessionRecord record_of(const Statement& row) {
  SessionRecord record{.id = row.text(0), .cwd = row.text(1)};
  const Json body = Json::parse(row.text(2));
  body.at("title").get_to(record.title);
  body.at("mode").get_to(record.mode);
  body.at("rounds").get_to(record.rounds);
  body.at("drafts").get_to(record.drafts);
  body.at("feedback").get_to(record.feedback);
  body.at("own_tests").get_to(record.own_tests);
  for (const Json& it : body.at("turns")) {
    record.turns.push_back({.name = it.at("name"), .key = it.at("key"), .start = it.at("start"), .file = it.at("file"),
                            .before = it.at("before"), .specialist = it.at("specialist"), .sealed = it.at("sealed"),
                            .events = it.at("events"), .updates = it.at("updates")});
  }
  record.version = row.integer(3);
  record.updated = std::chrono::sys_time<milliseconds>(milliseconds(row.integer(4)));
  record.at_work = row.integer(5) != 0;
  return record;
}

constexpr const char* kSchema =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE IF NOT EXISTS conversations (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    " cwd TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL, at_work INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS conversations_at_work ON conversations(number) WHERE at_work = 1;"
    "CREATE INDEX IF NOT EXISTS conversations_tenant ON conversations(tenant, number);";

std::string tenant_of(const std::string& id) {
  const std::size_t dash = id.find('-');
  return dash == std::string::npos ? std::string() : id.substr(0, dash);
}

}  // namespace

struct SessionStore::Impl {
  Database db;
  mutable std::mutex mutex;

  template <class F>
  auto guarded(F&& body) const -> decltype(body()) {
    const std::scoped_lock lock(mutex);
    try {
      return body();
    } catch (const Failure& failure) {
      return tl::unexpected(StoreError{StoreError::Kind::io, failure.what()});
    } catch (const Json::exception& failure) {
      return tl::unexpected(StoreError{StoreError::Kind::io, failure.what()});
    }
  }
};

SessionStore::SessionStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SessionStore::~SessionStore() = default;

tl::expected<std::unique_ptr<SessionStore>, StoreError> SessionStore::open(const std::filesystem::path& file) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) {
    return tl::unexpected(StoreError{StoreError::Kind::io, file.string() + ": " + (raw == nullptr ? "out of memory" : sqlite3_errmsg(raw))});
  }
  sqlite3_busy_timeout(raw, 5'000);
  if (sqlite3_exec(raw, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return tl::unexpected(StoreError{StoreError::Kind::io, file.string() + ": " + sqlite3_errmsg(raw)});
  }
  auto impl = std::make_unique<Impl>();
  impl->db = std::move(db);
  return std::unique_ptr<SessionStore>(new SessionStore(std::move(impl)));
}

tl::expected<void, StoreError> SessionStore::put(SessionRecord& record) {
  return impl_->guarded([&]() -> tl::expected<void, StoreError> {
    record.updated = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
    const std::int64_t now = record.updated.time_since_epoch().count();
    if (record.version == 0) {
      Statement insert(impl_->db.get(),
                       "INSERT OR IGNORE INTO conversations (id, tenant, cwd, body, version, at_work, updated_ms) VALUES (?,?,?,?,1,?,?)");
      insert.bind(record.id).bind(tenant_of(record.id)).bind(record.cwd).bind(body_of(record)).bind(record.at_work ? 1 : 0).bind(now).step();
    } else {
      Statement update(impl_->db.get(),
                       "UPDATE conversations SET cwd=?, body=?, version=version+1, at_work=?, updated_ms=? WHERE id=? AND version=?");
      update.bind(record.cwd).bind(body_of(record)).bind(record.at_work ? 1 : 0).bind(now).bind(record.id).bind(record.version).step();
    }
    if (sqlite3_changes(impl_->db.get()) == 0) {
      return tl::unexpected(StoreError{StoreError::Kind::conflict, "session " + record.id + " was changed by another process"});
    }
    ++record.version;
    return {};
  });
}

tl::expected<SessionRecord, StoreError> SessionStore::get(const std::string& id) const {
  return impl_->guarded([&]() -> tl::expected<SessionRecord, StoreError> {
    Statement select(impl_->db.get(), "SELECT id, cwd, body, version, updated_ms, at_work FROM conversations WHERE id=?");
    if (!select.bind(id).step()) return tl::unexpected(StoreError{StoreError::Kind::unknown, "no session " + id});
    return record_of(select);
  });
}

tl::expected<std::vector<SessionRecord>, StoreError> SessionStore::list(const std::string& like, const std::string& cwd, int limit,
                                                                        const std::string& cursor) const {
  return impl_->guarded([&]() -> tl::expected<std::vector<SessionRecord>, StoreError> {
    Statement select(impl_->db.get(),
                     "SELECT id, cwd, body, version, updated_ms, at_work FROM conversations WHERE tenant=?1 AND (?2='' OR cwd=?2) AND "
                     "(?3='' OR number < (SELECT number FROM conversations WHERE id=?3)) ORDER BY number DESC LIMIT ?4");
    select.bind(tenant_of(like)).bind(cwd).bind(cursor).bind(limit);
    std::vector<SessionRecord> records;
    while (select.step()) records.push_back(record_of(select));
    return records;
  });
}

tl::expected<std::vector<std::string>, StoreError> SessionStore::at_work() const {
  return impl_->guarded([&]() -> tl::expected<std::vector<std::string>, StoreError> {
    Statement select(impl_->db.get(), "SELECT id FROM conversations WHERE at_work=1 ORDER BY number");
    std::vector<std::string> ids;
    while (select.step()) ids.push_back(select.text(0));
    return ids;
  });
}

}  // namespace fixpoint::server
