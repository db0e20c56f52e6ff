#include "agent/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "agent/detail/checkpointer.h"
#include "agent/detail/names.h"
#include "agent/detail/schema.h"
#include "agent/detail/sqlite.h"

namespace fixpoint::agent {

using detail::Database;
using detail::SqliteFailure;
using detail::Statement;
using detail::Transaction;
using Millis = std::chrono::sys_time<std::chrono::milliseconds>;

std::string_view to_string(EscalationState state) { return detail::name_of(state); }
std::optional<EscalationState> parse_escalation_state(std::string_view name) {
  return detail::value_of<EscalationState>(name);
}

SessionLock::SessionLock(SessionLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
SessionLock& SessionLock::operator=(SessionLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
SessionLock::~SessionLock() {
  if (fd_ >= 0) close(fd_);
}

namespace {

Millis now() { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); }
std::int64_t ms(Millis time) { return time.time_since_epoch().count(); }
Millis at(std::int64_t milliseconds) { return Millis(std::chrono::milliseconds(milliseconds)); }

JournalError unknown(std::string_view what, const std::string& id) {
  return {JournalError::Kind::unknown, "no " + std::string(what) + " '" + id + "'"};
}

constexpr const char* kSessionColumns =
    "SELECT id, title, language, model, state, last_seq, created_ms, updated_ms, number FROM sessions ";
constexpr const char* kEscalationColumns =
    "SELECT e.id, s.id, e.state, s.title, e.claimed_by, e.created_ms, e.updated_ms, e.session, s.last_seq "
    "FROM escalations e JOIN sessions s ON s.number = e.session ";

SessionRow session_row(const Statement& row) {
  return {.id = row.text(0),
          .title = row.text(1),
          .language = row.text(2),
          .model = row.text(3),
          .state = row.text(4),
          .last_seq = row.integer(5),
          .created = at(row.integer(6)),
          .updated = at(row.integer(7))};
}

EscalationRow escalation_row(const Statement& row) {
  return {.id = row.text(0),
          .session = row.text(1),
          .state = parse_escalation_state(row.text(2)).value_or(EscalationState::open),
          .title = row.text(3),
          .claimed_by = row.text(4),
          .created = at(row.integer(5)),
          .updated = at(row.integer(6))};
}

std::string joined(const char* a, const char* b) { return std::string(a) + b; }

}  // namespace

/// Two connections, each with a mutex: one that writes, whose hot path's statements (append) are prepared once, and one on which
/// sessions are read, long ones too, while others write.
struct Journal::Impl {
  Impl(std::filesystem::path path, const Options& options)
      : file(std::move(path)), busy_timeout(static_cast<int>(options.busy_timeout.count())), db(file.string()) {
    sqlite3_busy_timeout(db.handle(), busy_timeout);
    db.execute("PRAGMA journal_mode = WAL");
    db.execute(options.sync_every_commit ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    db.execute("PRAGMA foreign_keys = ON");
    checkpointer = std::make_unique<detail::Checkpointer>(file.string(), db);
  }

  void prepare() {
    find_session = std::make_unique<Statement>(db, "SELECT number, last_seq, state, title FROM sessions WHERE id = ?");
    insert_event = std::make_unique<Statement>(db, "INSERT INTO events(session, seq, at_ms, kind, body) VALUES(?, ?, ?, ?, ?)");
    update_session =
        std::make_unique<Statement>(db, "UPDATE sessions SET last_seq = ?, state = ?, updated_ms = ? WHERE number = ?");
    reader = std::make_unique<Database>(file.string());
    sqlite3_busy_timeout(reader->handle(), busy_timeout);
  }

  std::filesystem::path file;
  const int busy_timeout;  ///< ms
  std::mutex mutex, read_mutex;
  std::unique_ptr<detail::Checkpointer> checkpointer;  // dies after the connection that it watches
  Database db;
  std::unique_ptr<Statement> find_session, insert_event, update_session;
  std::unique_ptr<Database> reader;
  bool deliveries = false;

  /// What an append needs to know of its session.
  struct Head {
    std::int64_t number = 0;
    std::int64_t last_seq = 0;
    std::string state;
    std::string title;
  };

  std::optional<Head> head(const std::string& session) {
    find_session->reset();
    find_session->bind(1, session);
    std::optional<Head> head;
    if (find_session->step()) {
      head = Head{find_session->integer(0), find_session->integer(1), find_session->text(2), find_session->text(3)};
    }
    find_session->reset();
    return head;
  }

  Head create(const std::string& session, const SessionStarted& started) {
    Head head{.state = "running", .title = title(started.task)};
    Statement insert(db,
                     "INSERT INTO sessions(id, title, language, model, state, last_seq, created_ms, updated_ms) "
                     "VALUES(?, ?, ?, ?, 'running', 0, ?, ?)");
    const std::int64_t time = ms(now());
    insert.bind(1, session).bind(2, head.title).bind(3, started.task.language).bind(4, started.model);
    insert.bind(5, time).bind(6, time).run();
    head.number = db.last_row();
    return head;
  }

  void set_escalation(const std::string& id, EscalationState state) {
    Statement update(db, "UPDATE escalations SET state = ?, updated_ms = ? WHERE id = ?");
    update.bind(1, to_string(state)).bind(2, ms(now())).bind(3, id).run();
  }

  /// The escalation that an end makes, returns to people, or closes.
  void follow_end(const Head& head, const std::string& session, const Ended& ended) {
    if (ended.escalation.empty()) return;
    if (ended.outcome == Outcome::solved) return set_escalation(ended.escalation, EscalationState::solved_by_hand);
    if (ended.outcome == Outcome::declined) return set_escalation(ended.escalation, EscalationState::declined);
    if (ended.outcome != Outcome::handed_over) return;
    Statement upsert(db,
                     "INSERT INTO escalations(id, session, state, created_ms, updated_ms) VALUES(?, ?, 'open', ?, ?) "
                     "ON CONFLICT(id) DO UPDATE SET state = 'open', claimed_by = '', updated_ms = excluded.updated_ms");
    const std::int64_t time = ms(now());
    upsert.bind(1, ended.escalation).bind(2, head.number).bind(3, time).bind(4, time).run();
    if (!deliveries) return;
    const nlohmann::json body{{"type", "escalation_opened"}, {"id", ended.escalation},      {"session", session},
                              {"title", head.title},         {"reason", ended.detail},      {"at_ms", time},
                              {"rounds", ended.spent.rounds}, {"tokens", ended.spent.tokens}};
    Statement insert(db, "INSERT INTO deliveries(escalation, body, next_ms) VALUES(?, ?, ?)");
    insert.bind(1, ended.escalation).bind(2, body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).bind(3, time).run();
  }

  /// In a transaction of the caller's.
  std::vector<Stamped> append(Head& head, const std::string& session, std::vector<Event> events) {
    std::vector<Stamped> stamped;
    stamped.reserve(events.size());
    const Millis time = now();
    for (Event& event : events) {
      ++head.last_seq;
      insert_event->bind(1, head.number).bind(2, head.last_seq).bind(3, ms(time)).bind(4, kind_of(event));
      insert_event->bind(5, to_json(event)).run();
      if (const auto* ended = std::get_if<Ended>(&event)) {
        head.state = to_string(ended->outcome);
        follow_end(head, session, *ended);
      } else {
        head.state = "running";
      }
      stamped.push_back({session, head.last_seq, time, std::move(event)});
    }
    update_session->bind(1, head.last_seq).bind(2, head.state).bind(3, ms(time)).bind(4, head.number).run();
    return stamped;
  }

  std::optional<EscalationRow> escalation(const std::string& id) {
    Statement query(db, joined(kEscalationColumns, "WHERE e.id = ?").c_str());
    query.bind(1, id);
    return query.step() ? std::optional(escalation_row(query)) : std::nullopt;
  }

  /// Runs `work` on the connection that writes, under its mutex; SQLite's failures become values.
  template <class F>
  auto guarded(F&& work) -> decltype(work()) {
    return guarded(mutex, std::forward<F>(work));
  }

  /// The same on the one that reads.
  template <class F>
  auto reading(F&& work) -> decltype(work()) {
    return guarded(read_mutex, std::forward<F>(work));
  }

  template <class F>
  auto guarded(std::mutex& guard, F&& work) -> decltype(work()) {
    const std::scoped_lock lock(guard);
    try {
      return work();
    } catch (const SqliteFailure& failure) {
      const bool busy = (failure.code & 0xFF) == SQLITE_BUSY;
      const bool corrupt = (failure.code & 0xFF) == SQLITE_CORRUPT || (failure.code & 0xFF) == SQLITE_NOTADB;
      return tl::unexpected(JournalError{busy      ? JournalError::Kind::busy
                                         : corrupt ? JournalError::Kind::corrupt
                                                   : JournalError::Kind::io,
                                         file.string() + ": " + failure.what()});
    }
  }

  /// A person's answer to an open escalation: an event of its session and the state that follows.
  tl::expected<EscalationRow, JournalError> answer(const std::string& id, Event event, std::optional<EscalationState> state) {
    return guarded([&]() -> tl::expected<EscalationRow, JournalError> {
      Transaction transaction(db);
      std::optional<EscalationRow> row = escalation(id);
      if (!row) return tl::unexpected(unknown("escalation", id));
      if (row->state != EscalationState::open && row->state != EscalationState::claimed) {
        return tl::unexpected(JournalError{JournalError::Kind::conflict,
                                           "escalation " + id + " is " + std::string(to_string(row->state)) + " already"});
      }
      std::optional<Head> session = head(row->session);
      if (!session) return tl::unexpected(unknown("session", row->session));
      if (session->state != to_string(Outcome::handed_over)) {
        return tl::unexpected(JournalError{JournalError::Kind::conflict, "session " + row->session + " goes on already"});
      }
      std::vector<Event> events;
      events.push_back(std::move(event));
      append(*session, row->session, std::move(events));
      if (state) set_escalation(id, *state);
      row = escalation(id);
      transaction.commit();
      return *row;
    });
  }
};

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

tl::expected<std::unique_ptr<Journal>, JournalError> Journal::open(const std::filesystem::path& file, Options options) {
  try {
    auto impl = std::make_unique<Impl>(file, options);
    if (!detail::migrate(impl->db)) {
      return tl::unexpected(JournalError{JournalError::Kind::newer_schema,
                                         file.string() + ": written by a later version of this program"});
    }
    impl->prepare();
    return std::unique_ptr<Journal>(new Journal(std::move(impl)));
  } catch (const SqliteFailure& failure) {
    const bool corrupt = (failure.code & 0xFF) == SQLITE_CORRUPT || (failure.code & 0xFF) == SQLITE_NOTADB;
    return tl::unexpected(
        JournalError{corrupt ? JournalError::Kind::corrupt : JournalError::Kind::io, file.string() + ": " + failure.what()});
  }
}

tl::expected<SessionLock, JournalError> Journal::lock(const std::string& session) {
  const std::string path = impl_->file.string() + ".lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return tl::unexpected(JournalError{JournalError::Kind::io, path + ": " + std::strerror(errno)});
  SessionLock held(fd);
  // One byte of the file stands for a session; the kernel lets go of it when the last descriptor of the open file closes.
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(std::hash<std::string>{}(session) >> 2);
  range.l_len = 1;
  if (fcntl(fd, F_OFD_SETLK, &range) == 0) return held;
  if (errno == EAGAIN || errno == EACCES) {
    return tl::unexpected(JournalError{JournalError::Kind::busy, "session " + session + " is being run by somebody else"});
  }
  return tl::unexpected(JournalError{JournalError::Kind::io, path + ": " + std::strerror(errno)});
}

tl::expected<std::vector<Stamped>, JournalError> Journal::append(const std::string& session, std::int64_t last_seq,
                                                                 std::vector<Event> events) {
  return impl_->guarded([&]() -> tl::expected<std::vector<Stamped>, JournalError> {
    Transaction transaction(impl_->db);
    std::optional<Impl::Head> head = impl_->head(session);
    const auto* started = events.empty() ? nullptr : std::get_if<SessionStarted>(&events.front());
    if (!head && started != nullptr) head = impl_->create(session, *started);
    if (!head) return tl::unexpected(unknown("session", session));
    if (head->last_seq != last_seq) {
      return tl::unexpected(JournalError{JournalError::Kind::conflict,
                                         "session " + session + " stands at event " + std::to_string(head->last_seq) +
                                             ", not at " + std::to_string(last_seq) + ": somebody else runs it"});
    }
    std::vector<Stamped> stamped = impl_->append(*head, session, std::move(events));
    transaction.commit();
    return stamped;
  });
}

tl::expected<std::vector<Stamped>, JournalError> Journal::events(const std::string& session, std::int64_t after_seq) const {
  struct Row {
    std::int64_t seq, at_ms;
    std::string body;
  };
  const auto rows = impl_->reading([&]() -> tl::expected<std::vector<Row>, JournalError> {
    Statement find(*impl_->reader, "SELECT number FROM sessions WHERE id = ?");
    find.bind(1, session);
    if (!find.step()) return tl::unexpected(unknown("session", session));
    Statement query(*impl_->reader, "SELECT seq, at_ms, body FROM events WHERE session = ? AND seq > ? ORDER BY seq");
    query.bind(1, find.integer(0)).bind(2, after_seq);
    std::vector<Row> read;
    while (query.step()) read.push_back({query.integer(0), query.integer(1), query.text(2)});
    return read;
  });
  if (!rows) return tl::unexpected(rows.error());
  std::vector<Stamped> stamped;
  for (const Row& row : *rows) {
    tl::expected<Event, std::string> event = parse_event(row.body);
    if (!event) {
      return tl::unexpected(JournalError{JournalError::Kind::corrupt,
                                         "session " + session + ", event " + std::to_string(row.seq) + ": " + event.error()});
    }
    stamped.push_back({session, row.seq, at(row.at_ms), *std::move(event)});
  }
  return stamped;
}

tl::expected<SessionRow, JournalError> Journal::session(const std::string& id) const {
  return impl_->reading([&]() -> tl::expected<SessionRow, JournalError> {
    Statement query(*impl_->reader, joined(kSessionColumns, "WHERE id = ?").c_str());
    query.bind(1, id);
    if (!query.step()) return tl::unexpected(unknown("session", id));
    return session_row(query);
  });
}

tl::expected<std::vector<SessionRow>, JournalError> Journal::sessions(int limit, const std::string& cursor) const {
  return impl_->reading([&]() -> tl::expected<std::vector<SessionRow>, JournalError> {
    Statement query(*impl_->reader, joined(kSessionColumns,
                                      "WHERE ?1 = '' OR number < (SELECT number FROM sessions WHERE id = ?1) "
                                      "ORDER BY number DESC LIMIT ?2")
                                   .c_str());
    query.bind(1, cursor).bind(2, static_cast<std::int64_t>(limit));
    std::vector<SessionRow> rows;
    while (query.step()) rows.push_back(session_row(query));
    return rows;
  });
}

tl::expected<EscalationRow, JournalError> Journal::escalation(const std::string& id) const {
  return impl_->guarded([&]() -> tl::expected<EscalationRow, JournalError> {
    std::optional<EscalationRow> row = impl_->escalation(id);
    if (!row) return tl::unexpected(unknown("escalation", id));
    return *row;
  });
}

tl::expected<std::vector<EscalationRow>, JournalError> Journal::escalations(std::optional<EscalationState> state, int limit,
                                                                            const std::string& cursor) const {
  return impl_->guarded([&]() -> tl::expected<std::vector<EscalationRow>, JournalError> {
    Statement query(impl_->db, joined(kEscalationColumns,
                                      "WHERE (?1 = '' OR e.state = ?1) AND (?2 = '' OR e.number < "
                                      "(SELECT number FROM escalations WHERE id = ?2)) ORDER BY e.number DESC LIMIT ?3")
                                   .c_str());
    query.bind(1, state ? to_string(*state) : std::string_view()).bind(2, cursor).bind(3, static_cast<std::int64_t>(limit));
    std::vector<EscalationRow> rows;
    while (query.step()) rows.push_back(escalation_row(query));
    return rows;
  });
}

tl::expected<EscalationRow, JournalError> Journal::claim(const std::string& id, const std::string& by) {
  return impl_->guarded([&]() -> tl::expected<EscalationRow, JournalError> {
    Transaction transaction(impl_->db);
    const std::optional<EscalationRow> row = impl_->escalation(id);
    if (!row) return tl::unexpected(unknown("escalation", id));
    if (row->state != EscalationState::open) {
      const std::string who = row->state == EscalationState::claimed ? " by " + row->claimed_by : std::string();
      return tl::unexpected(JournalError{JournalError::Kind::conflict,
                                         "escalation " + id + " is " + std::string(to_string(row->state)) + " already" + who});
    }
    Statement update(impl_->db, "UPDATE escalations SET state = 'claimed', claimed_by = ?, updated_ms = ? WHERE id = ?");
    update.bind(1, by).bind(2, ms(now())).bind(3, id).run();
    const std::optional<EscalationRow> claimed = impl_->escalation(id);
    transaction.commit();
    return *claimed;
  });
}

tl::expected<EscalationRow, JournalError> Journal::give_hint(const std::string& id, HintGiven hint) {
  return impl_->answer(id, std::move(hint), EscalationState::returned);
}

tl::expected<EscalationRow, JournalError> Journal::submit(const std::string& id, ProgramSubmitted program) {
  return impl_->answer(id, std::move(program), std::nullopt);  // its check decides
}

tl::expected<EscalationRow, JournalError> Journal::decline(const std::string& id, Declined declined) {
  return impl_->answer(id, std::move(declined), EscalationState::declined);
}

void Journal::enable_deliveries(bool on) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->deliveries = on;
}

tl::expected<std::optional<Delivery>, JournalError> Journal::next_delivery(Millis time) {
  return impl_->guarded([&]() -> tl::expected<std::optional<Delivery>, JournalError> {
    Statement query(impl_->db,
                    "SELECT id, escalation, body, attempts FROM deliveries WHERE state = 'pending' AND next_ms <= ? "
                    "ORDER BY next_ms, id LIMIT 1");
    query.bind(1, ms(time));
    if (!query.step()) return std::optional<Delivery>();
    return std::optional(Delivery{query.integer(0), query.text(1), query.text(2), static_cast<int>(query.integer(3))});
  });
}

tl::expected<void, JournalError> Journal::delivery_done(std::int64_t id) {
  return impl_->guarded([&]() -> tl::expected<void, JournalError> {
    Statement update(impl_->db, "UPDATE deliveries SET state = 'delivered', attempts = attempts + 1 WHERE id = ?");
    update.bind(1, id).run();
    return {};
  });
}

tl::expected<void, JournalError> Journal::delivery_failed(std::int64_t id, Millis next_try, bool give_up) {
  return impl_->guarded([&]() -> tl::expected<void, JournalError> {
    Statement update(impl_->db, "UPDATE deliveries SET state = ?, attempts = attempts + 1, next_ms = ? WHERE id = ?");
    update.bind(1, give_up ? std::string_view("given_up") : std::string_view("pending")).bind(2, ms(next_try)).bind(3, id).run();
    return {};
  });
}

}  // namespace fixpoint::agent
