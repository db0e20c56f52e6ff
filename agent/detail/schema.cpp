#include "agent/detail/schema.h"

#include <array>
#include <string>

namespace fixpoint::agent::detail {
namespace {

/// Step i brings version i to version i + 1. Steps that have been in a release are never changed.
constexpr std::array<const char*, kSchemaVersion> kSteps{
    // 1: sessions, their events, and what waits for people
    R"(CREATE TABLE sessions(
         number INTEGER PRIMARY KEY AUTOINCREMENT,
         id TEXT NOT NULL UNIQUE,
         title TEXT NOT NULL,
         language TEXT NOT NULL,
         model TEXT NOT NULL,
         state TEXT NOT NULL,
         last_seq INTEGER NOT NULL,
         created_ms INTEGER NOT NULL,
         updated_ms INTEGER NOT NULL);
       CREATE TABLE events(
         session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE,
         seq INTEGER NOT NULL,
         at_ms INTEGER NOT NULL,
         kind TEXT NOT NULL,
         body TEXT NOT NULL,
         PRIMARY KEY(session, seq));
       CREATE TABLE escalations(
         number INTEGER PRIMARY KEY AUTOINCREMENT,
         id TEXT NOT NULL UNIQUE,
         session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE,
         state TEXT NOT NULL,
         claimed_by TEXT NOT NULL DEFAULT '',
         created_ms INTEGER NOT NULL,
         updated_ms INTEGER NOT NULL);
       CREATE INDEX escalations_by_state ON escalations(state, number);)",
    // 2: messages to the webhook, written together with what they tell of
    R"(CREATE TABLE deliveries(
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         escalation TEXT NOT NULL,
         body TEXT NOT NULL,
         attempts INTEGER NOT NULL DEFAULT 0,
         next_ms INTEGER NOT NULL,
         state TEXT NOT NULL DEFAULT 'pending');
       CREATE INDEX deliveries_due ON deliveries(state, next_ms);)",
};

int version_of(Database& db) {
  Statement statement(db, "PRAGMA user_version");
  return statement.step() ? static_cast<int>(statement.integer(0)) : 0;
}

}  // namespace

bool migrate(Database& db) {
  if (version_of(db) == kSchemaVersion) return true;
  Transaction transaction(db);
  const int version = version_of(db);  // again: another process may have been first
  if (version > kSchemaVersion) return false;
  for (int step = version; step < kSchemaVersion; ++step) db.execute(kSteps[static_cast<std::size_t>(step)]);
  db.execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  transaction.commit();
  return true;
}

}  // namespace fixpoint::agent::detail
