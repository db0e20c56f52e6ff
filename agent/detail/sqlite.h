#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fixpoint::agent::detail {

/// What SQLite says went wrong. Caught at the journal's public functions, which return it as a value.
struct SqliteFailure : std::runtime_error {
  SqliteFailure(int sqlite_code, const std::string& what) : std::runtime_error(what), code(sqlite_code) {}
  int code;
};

/// A connection; closed when it dies.
class Database {
 public:
  explicit Database(const std::string& file);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const char* sql);
  [[nodiscard]] sqlite3* handle() const { return db_; }
  [[nodiscard]] std::int64_t last_row() const { return sqlite3_last_insert_rowid(db_); }

 private:
  sqlite3* db_ = nullptr;
};

/// A prepared statement. Texts are copied when bound.
class Statement {
 public:
  Statement(const Database& db, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view value);
  /// True while there is a row.
  bool step();
  /// Runs to the end and makes ready for the next use.
  void run();
  void reset();

  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  [[nodiscard]] std::string text(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

/// BEGIN IMMEDIATE … COMMIT; rolled back if it dies before commit().
class Transaction {
 public:
  explicit Transaction(Database& db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database* db_;
  bool open_ = true;
};

}  // namespace fixpoint::agent::detail
