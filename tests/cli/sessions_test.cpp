#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/agent/http_server.h"
#include "tests/cli/program.h"

// Sessions as people and scripts meet them: solved, interrupted, handed over, taken up again; on a terminal and through pipes.
namespace fixpoint::cli_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using nlohmann::json;

std::string program(const std::string& expression) { return "def add(a, b):\n    return " + expression + "\n"; }
std::string answer(const std::string& expression) { return "So:\n```python\n" + program(expression) + "```\n"; }

class SessionsTest : public ProgramTest {
 protected:
  void SetUp() override {
    write(file("task.md"), "Write `add(a, b)`.\n\n# Tests\nassert add(1, 2) == 3\nassert add(5, 5) == 10\n");
    const Ran doctor = run({"doctor"});
    if (doctor.code != 0) GTEST_SKIP() << "no sandbox on this machine: " << doctor.err;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) GTEST_SKIP() << "no pseudo-terminals on this machine";
    close(terminal);
  }
  std::string script(const std::string& name, const json& answers) const {
    write(file(name), answers.dump());
    return file(name).string();
  }
  std::vector<std::string> solve(const std::string& script, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"solve", file("task.md").string(), "--script", script, "--journal", journal()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string journal() const { return file("journal.db").string(); }
  /// The id of the newest session, or escalation.
  std::string newest(const char* of) const { return run({of, "list", "--json", "--limit", "1", "--journal", journal()}).json().value("id", ""); }
  std::string state() const { return run({"sessions", "list", "--json", "--limit", "1", "--journal", journal()}).json().value("state", ""); }
};

TEST_F(SessionsTest, APipeGetsTheProgramAndNothingElse) {
  const Ran ran = run(solve(script("s", {answer("a - b"), answer("a + b")})));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, program("a + b"));
  const Ran events = run(solve(script("s", {answer("a + b")}), {"--json"}));
  EXPECT_EQ(events.json().value("type", ""), "ended");
}

TEST_F(SessionsTest, APipeIsToldThatNoTestsStandBehindAProgram) {
  write(file("task.md"), "Write `add(a, b)`.\n");
  const Ran ran = run(solve(script("s", {answer("a + b"), answer("a + b")})));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, program("a + b"));
  EXPECT_THAT(ran.err, HasSubstr("solved: there are no tests"));
}

TEST_F(SessionsTest, ATerminalShowsTheRoundsTheDifferenceAndTheProgram) {
  const Ran ran = on_terminal(solve(script("s", {answer("a - b"), answer("a + b")})));
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("first draft"), HasSubstr("assert add(1, 2) == 3"), HasSubstr("got -1"), HasSubstr("+     return a + b"),
                             HasSubstr("2 of 2 tests passed"), HasSubstr("solved")));
}

TEST_F(SessionsTest, CtrlCStopsAtOnceAndTheSessionGoesOnAsItSays) {
  const Ran cut = on_terminal(solve(script("s", {answer("a - b"), {{"text", answer("a + b")}, {"delay_ms", 120'000}}})), "round 1");
  EXPECT_EQ(cut.code, 1);
  EXPECT_EQ(state(), "cancelled");
  const std::string id = newest("sessions");
  EXPECT_THAT(cut.out, AllOf(HasSubstr("fixpoint sessions resume " + id + " --script "), HasSubstr("--journal " + journal())));
  EXPECT_THAT(cut.out, HasSubstr("best so far"));
  const Ran resumed = on_terminal({"sessions", "resume", id, "--script", script("t", {answer("a + b")}), "--journal", journal()});
  EXPECT_EQ(resumed.code, 0) << resumed.out;
  EXPECT_THAT(resumed.out, AllOf(HasSubstr("resumed"), HasSubstr("solved")));
  EXPECT_EQ(run({"sessions", "replay", id, "--journal", journal()}).code, 0);
}

TEST_F(SessionsTest, AHandOverIsShownHintedAndSolved) {
  const std::string wrong = script("s", {answer("a - b")});
  const Ran handed = on_terminal(solve(wrong, {"--rounds", "0"}));
  EXPECT_EQ(handed.code, 3) << handed.out;
  const std::string id = newest("escalations");
  EXPECT_THAT(handed.out, HasSubstr("fixpoint escalations show " + id));
  const Ran shown = run({"escalations", "show", id, "--journal", journal()});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("assert add(5, 5) == 10"), HasSubstr("return a - b"), HasSubstr("got -1"), HasSubstr("Function: `add`")));
  const Ran hinted = on_terminal({"escalations", "hint", id, "add them", "--script", script("t", {answer("a + b")}), "--journal", journal()});
  EXPECT_EQ(hinted.code, 0) << hinted.out;
  EXPECT_EQ(state(), "solved");
}

TEST_F(SessionsTest, AHandOverThroughAPipeIsOneLineWithTheCommandThatShowsIt) {
  const Ran handed = run(solve(script("s", {answer("a - b")}), {"--rounds", "0"}));
  EXPECT_EQ(handed.code, 3) << handed.err;
  const std::string id = newest("escalations");
  EXPECT_THAT(handed.err, HasSubstr(": fixpoint escalations show " + id + " --journal " + journal() + "\n"));
  EXPECT_EQ(handed.err.find(id), handed.err.rfind(id)) << handed.err;
  write(file("empty.py"), "\n");
  const Ran empty = run({"escalations", "submit", id, file("empty.py").string(), "--journal", journal()});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("empty.py"));
}

TEST_F(SessionsTest, APersonsProgramIsRunAndADeclineEnds) {
  const std::string wrong = script("s", {answer("a - b")});
  ASSERT_EQ(run(solve(wrong, {"--rounds", "0"})).code, 3);
  const std::string first = newest("escalations");
  write(file("bad.py"), program("a * b"));
  write(file("good.py"), program("b + a"));
  const Ran bad = on_terminal({"escalations", "submit", first, file("bad.py").string(), "--journal", journal()});
  EXPECT_EQ(bad.code, 3) << bad.out;
  EXPECT_THAT(bad.out, HasSubstr("got 2"));
  const Ran good = run({"escalations", "submit", first, file("good.py").string(), "--journal", journal()});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, program("b + a"));
  ASSERT_EQ(run(solve(wrong, {"--rounds", "0"})).code, 3);
  EXPECT_EQ(run({"escalations", "decline", newest("escalations"), "no", "--journal", journal()}).code, 0);
  EXPECT_EQ(state(), "declined");
}

TEST_F(SessionsTest, WhatCanNotWorkIsRefusedBeforeAnythingIsSpent) {
  const std::string answers = script("s", {answer("a + b")});
  const Ran folder = run({"solve", file(".").string(), "--script", answers, "--journal", journal()});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("irectory"));
  const Ran language = run(solve(answers, {"--lang", "klingon"}));
  EXPECT_EQ(language.code, 2);
  EXPECT_THAT(language.err, HasSubstr("'klingon'"));
  const Ran ladder = run(solve(answers, {"--ladder", "branch:2,boss"}));
  EXPECT_EQ(ladder.code, 2);
  EXPECT_THAT(ladder.err, AllOf(HasSubstr("--ladder"), HasSubstr("'boss'")));
  EXPECT_EQ(run(solve(answers, {"--ladder", "specialist:2"})).code, 2);
  const Ran mistyped = run({"sessions", "list", "--journal", journal()});
  EXPECT_EQ(mistyped.code, 1);
  EXPECT_THAT(mistyped.err, AllOf(HasSubstr("--journal"), HasSubstr("'" + journal() + "'")));
  EXPECT_FALSE(std::filesystem::exists(journal()));
  const Ran below_a_file = run({"solve", file("task.md").string(), "--script", answers, "--journal", file("task.md/folder/journal.db").string()});
  EXPECT_EQ(below_a_file.code, 1);
  EXPECT_THAT(below_a_file.err, HasSubstr("task.md/folder'"));
  ASSERT_EQ(run(solve(answers)).code, 0);
  const Ran nobody = run({"sessions", "resume", "nobody", "--journal", journal()});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_THAT(nobody.err, AllOf(HasSubstr("nobody"), Not(HasSubstr("no model named"))));
  for (const char* list : {"sessions", "escalations"}) {
    const Ran after = run({list, "list", "--after", "nobody", "--journal", journal()});
    EXPECT_EQ(after.code, 1) << list;
    EXPECT_THAT(after.err, HasSubstr("nobody")) << list;
  }
}

TEST_F(SessionsTest, AnExportedSessionIsReplayedAndAnEmptyFileIsNone) {
  ASSERT_EQ(run(solve(script("s", {answer("a + b")}))).code, 0);
  const std::string exported = file("session.jsonl").string();
  ASSERT_EQ(run({"sessions", "export", newest("sessions"), "--journal", journal()}, exported).code, 0);
  EXPECT_EQ(run({"sessions", "replay", exported}).code, 0);
  write(file("empty.jsonl"), "");
  for (const char* action : {"show", "export", "replay"}) {
    const Ran empty = run({"sessions", action, file("empty.jsonl").string()});
    EXPECT_EQ(empty.code, 1) << action;
    EXPECT_THAT(empty.err, HasSubstr("empty.jsonl")) << action;
  }
}

TEST_F(SessionsTest, SigtermEndsAServerThatNobodyIsConnectedTo) {
  const std::string log = file("serve.log").string();
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  const std::string answers = script("s", {answer("a + b")});
  if (pid == 0) {
    if (freopen(log.c_str(), "w", stderr) == nullptr) _exit(126);
    execl(FIXPOINT_BINARY, FIXPOINT_BINARY, "serve", "--listen", "127.0.0.1:0", "--script", answers.c_str(), "--journal", journal().c_str(), nullptr);
    _exit(127);
  }
  while (content_of(log).find("ready") == std::string::npos && waitpid(pid, nullptr, WNOHANG) == 0) usleep(10'000);
  kill(pid, SIGTERM);
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << content_of(log);
}

/// `fixpoint eval` of two tasks of HumanEval's form that ask for `add`.
class RecordedEvalTest : public SessionsTest {
 protected:
  std::vector<std::string> eval(const std::string& script, const std::string& trace) const {
    std::string rows;
    for (const char* id : {"HumanEval/0", "HumanEval/1"}) {
      rows += json{{"task_id", id},
                   {"prompt", "def add(a, b):\n    \"\"\"\n    >>> add(1, 2)\n    3\n    \"\"\"\n"},
                   {"entry_point", "add"},
                   {"canonical_solution", "    return a + b\n"},
                   {"test", "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(5, 5) == 10\n"}}
                  .dump() + "\n";
    }
    write(file("data.jsonl"), rows);
    return {"eval", "humaneval", "--data", file("data.jsonl").string(), "--out", file("out").string(), "--workers", "1", "--script", script, "--record", file(trace).string()};
  }
};

TEST_F(RecordedEvalTest, ItsSessionsAreReplayedByBenchLoop) {
  const Ran recorded = run(eval(script("s", {answer("a - b"), answer("a + b"), answer("a * b"), answer("a + b")}), "trace"));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  agent::HttpServer server([](const agent::SeenRequest&) { return agent::streamed_answer({"a", "b"}); });
  const Ran replayed = run({"bench", "loop", "--url", server.url("/v1"), "-m", "some", "--trace", file("trace").string(), "--chat", "--think-scale", "0", "--json"});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(replayed.json()["sessions"], 2);
  EXPECT_EQ(replayed.json()["rounds"], 4);
  int repairs = 0;
  for (const auto& seen : server.seen()) {
    const json body = json::parse(seen.body);
    if (body["messages"].size() != 3) continue;
    ++repairs;
    EXPECT_THAT(body["messages"][1]["content"].get<std::string>(), ::testing::AnyOf(HasSubstr("a - b"), HasSubstr("a * b")));
    EXPECT_EQ(body["messages"][1]["content"], body["prediction"]["content"]);
  }
  EXPECT_EQ(repairs, 2);
}

TEST_F(RecordedEvalTest, ARunThatIsStoppedHasRecordedWhatItHadDone) {
  const json late{{"text", answer("a + b")}, {"delay_ms", 60'000}};
  const Ran stopped = on_terminal(eval(script("s", {answer("a - b"), answer("a + b"), late}), "trace"), "1/2");
  EXPECT_EQ(stopped.code, 1) << stopped.out;
  const std::string trace = content_of(file("trace"));
  EXPECT_THAT(trace, AllOf(HasSubstr("a - b"), HasSubstr("\"round\":1"))) << stopped.out;
}

TEST_F(RecordedEvalTest, APlaceThatCannotBeWrittenIsNamedBeforeAnythingRuns) {
  const Ran ran = run(eval(script("s", {answer("a + b")}), "nowhere/trace"));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("nowhere/trace"));
  EXPECT_FALSE(std::filesystem::exists(file("out")));
}

}  // namespace
}  // namespace fixpoint::cli_tests
