#include "agent/journal.h"

#include <sqlite3.h>

#include <fstream>

#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

Event started(const std::string& statement = "Write `f(x)`.") {
  SessionStarted event;
  event.task.statement = statement;
  event.model = "m";
  return event;
}
std::vector<Event> one(Event event) {
  std::vector<Event> events;
  events.push_back(std::move(event));
  return events;
}
void execute(const std::filesystem::path& file, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

TEST(JournalTest, EventsComeBackInOrderAfterReopening) {
  const TestFolder folder;
  {
    const auto journal = *Journal::open(folder.file("j.db"));
    ASSERT_TRUE(journal->append("a", 0, one(started())).has_value());
    ASSERT_TRUE(journal->append("a", 1, one(TextDelta{0, "x\ny \"z\" \xF0\x9F\x90\x8D"})).has_value());
  }
  const auto journal = *Journal::open(folder.file("j.db"));
  const auto events = journal->events("a");
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ(std::get<TextDelta>((*events)[1].event).text, "x\ny \"z\" \xF0\x9F\x90\x8D");
  EXPECT_EQ(journal->events("a", 1)->size(), 1U);
  EXPECT_EQ(journal->session("a")->last_seq, 2);
}

TEST(JournalTest, AWriterThatIsBehindIsRefused) {
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  ASSERT_TRUE(journal->append("a", 0, one(started())).has_value());
  const auto late = journal->append("a", 0, one(TextDelta{0, "x"}));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind, JournalError::Kind::conflict);
  EXPECT_EQ(journal->events("a")->size(), 1U);
  EXPECT_EQ(journal->append("b", 0, one(TextDelta{0, "x"})).error().kind, JournalError::Kind::unknown);
}

TEST(JournalTest, ListsNewestFirstInPages) {
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  for (const char* id : {"a", "b", "c", "d"}) ASSERT_TRUE(journal->append(id, 0, one(started(std::string("Task ") + id))).has_value());
  const auto first = journal->sessions(2);
  ASSERT_EQ(first->size(), 2U);
  EXPECT_EQ((*first)[0].id, "d");
  EXPECT_EQ((*first)[0].title, "Task d");
  const auto second = journal->sessions(2, (*first)[1].id);
  ASSERT_EQ(second->size(), 2U);
  EXPECT_EQ((*second)[0].id, "b");
}

TEST(JournalTest, AFileOfTheFirstVersionIsMigratedWithItsContent) {
  const TestFolder folder;
  const auto file = folder.file("old.db");
  execute(file,
          "CREATE TABLE sessions(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,"
          " language TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL, last_seq INTEGER NOT NULL,"
          " created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
          "CREATE TABLE events(session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE, seq INTEGER NOT NULL,"
          " at_ms INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY(session, seq));"
          "CREATE TABLE escalations(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, session INTEGER NOT NULL"
          " REFERENCES sessions(number) ON DELETE CASCADE, state TEXT NOT NULL, claimed_by TEXT NOT NULL DEFAULT '',"
          " created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
          "INSERT INTO sessions VALUES(1, 'old', 'T', 'python', 'm', 'running', 1, 5, 5);"
          "INSERT INTO events VALUES(1, 1, 5, 'text_delta', '{\"type\":\"text_delta\",\"attempt\":0,\"text\":\"hi\"}');"
          "PRAGMA user_version = 1;");
  const auto journal = Journal::open(file);
  ASSERT_TRUE(journal.has_value()) << journal.error().detail;
  EXPECT_EQ(std::get<TextDelta>((*journal)->events("old")->at(0).event).text, "hi");
  EXPECT_TRUE((*journal)->next_delivery({}).has_value());
}

TEST(JournalTest, AFileOfALaterVersionIsRefusedUntouched) {
  const TestFolder folder;
  const auto file = folder.file("new.db");
  execute(file, "PRAGMA user_version = 99;");
  const auto journal = Journal::open(file);
  ASSERT_FALSE(journal.has_value());
  EXPECT_EQ(journal.error().kind, JournalError::Kind::newer_schema);
}

TEST(JournalTest, AFileThatIsNoDatabaseIsAnError) {
  const TestFolder folder;
  std::ofstream(folder.file("text.db")) << std::string(5'000, 'x');
  const auto journal = Journal::open(folder.file("text.db"));
  ASSERT_FALSE(journal.has_value());
  EXPECT_EQ(journal.error().kind, JournalError::Kind::corrupt);
  EXPECT_FALSE(Journal::open(folder.file("no/such/folder.db")).has_value());
}

TEST(JournalTest, ABrokenEventIsReportedWithItsPlace) {
  const TestFolder folder;
  { ASSERT_TRUE((*Journal::open(folder.file("j.db")))->append("a", 0, one(started())).has_value()); }
  execute(folder.file("j.db"), "UPDATE events SET body = '{\"type\":\"checked\",\"attempt\":\"x\"}'");
  const auto events = (*Journal::open(folder.file("j.db")))->events("a");
  ASSERT_FALSE(events.has_value());
  EXPECT_NE(events.error().detail.find("event 1: checked.attempt: not an integer"), std::string::npos) << events.error().detail;
}

TEST(JournalTest, TheLockOfASessionIsHeldOnce) {
  const TestFolder folder;
  const auto one_process = *Journal::open(folder.file("j.db"));
  const auto another = *Journal::open(folder.file("j.db"));
  {
    const auto held = one_process->lock("a");
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(another->lock("a").error().kind, JournalError::Kind::busy);
    EXPECT_TRUE(another->lock("b").has_value());
  }
  EXPECT_TRUE(another->lock("a").has_value());
}

}  // namespace
}  // namespace fixpoint::agent
