#include "agent/detail/sqlite.h"

namespace fixpoint::agent::detail {
namespace {

[[noreturn]] void fail(sqlite3* db, int code) {
  throw SqliteFailure(code, db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

}  // namespace

Database::Database(const std::string& file) {
  // One connection for all threads; the journal's own mutex guards it.
  const int code = sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    const std::string what = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
    sqlite3_close(db_);
    throw SqliteFailure(code, what);
  }
  sqlite3_extended_result_codes(db_, 1);
}

Database::~Database() { sqlite3_close_v2(db_); }

void Database::execute(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(db_, code);
}

Statement::Statement(const Database& db, const char* sql) : db_(db.handle()) {
  const int code = sqlite3_prepare_v2(db_, sql, -1, &statement_, nullptr);
  if (code != SQLITE_OK) fail(db_, code);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int index, std::int64_t value) {
  if (const int code = sqlite3_bind_int64(statement_, index, value); code != SQLITE_OK) fail(db_, code);
  return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
  const int code = sqlite3_bind_text64(statement_, index, value.data() == nullptr ? "" : value.data(), value.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) fail(db_, code);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const SqliteFailure failure(code, sqlite3_errmsg(db_));
  sqlite3_reset(statement_);
  throw failure;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  const int bytes = sqlite3_column_bytes(statement_, column);
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes));
}

Transaction::Transaction(Database& db) : db_(&db) { db.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (open_) sqlite3_exec(db_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  db_->execute("COMMIT");
  open_ = false;
}

}  // namespace fixpoint::agent::detail
