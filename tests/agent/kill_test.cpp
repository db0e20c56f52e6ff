// kill -9 at random points of running loops. FIXPOINT_KILLS sets how many; docs/agent.md tells of a longer run.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "agent/replay.h"
#include "tests/agent/loop_fixture.h"

extern char** environ;

namespace fixpoint::agent {
namespace {

pid_t start(const std::string& journal, const std::string& session, const std::string& complaints) {
  const std::string program = FIXPOINT_KILL_CHILD;
  std::vector<std::string> words{program, journal, session, complaints};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/// What a session came to. A check that was cut off is begun twice and ends once.
std::vector<std::string> came_to(Journal& journal, const std::string& session) {
  std::vector<Stamped> events = journal.events(session).value_or(std::vector<Stamped>());
  std::erase_if(events, [](const Stamped& it) { return std::holds_alternative<CheckStarted>(it.event); });
  return substance(events);
}

TEST(KillTest, NoFinishedStepIsLostOrRunTwiceAndTheEndIsTheSame) {
  const char* wanted = std::getenv("FIXPOINT_KILLS");
  const int kills_wanted = wanted != nullptr ? std::atoi(wanted) : 25;
  const TestFolder folder;
  const std::string file = folder.file("killed.db").string();
  const std::string complaints = folder.file("complaints").string();
  std::mt19937_64 random(7);
  int kills = 0, sessions = 0, in_mid_session = 0;
  // How long a whole session takes here and now: kills are spread over that time.
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(wait_for(start(folder.file("measure.db").string(), "0", complaints)), 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  while (kills < kills_wanted) {
    const std::string session = std::to_string(++sessions);
    bool done = false;
    while (!done) {
      const pid_t child = start(file, session, complaints);
      if (kills < kills_wanted) {
        // At random points is the purpose: this sleep decides where, not whether, the test passes.
        std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<std::uint64_t>(whole.count())));
        kill(child, SIGKILL);
      }
      const int status = wait_for(child);
      if (WIFSIGNALED(status)) {
        ++kills;
        const auto journal = *Journal::open(file);
        if (journal->session(session)) ++in_mid_session;
      }
      done = WIFEXITED(status);
      if (done) {
        ASSERT_EQ(WEXITSTATUS(status), 0) << "session " << session;
      }
    }
    const auto killed = *Journal::open(file);
    const std::string undisturbed_file = folder.file("undisturbed" + session + ".db").string();
    ASSERT_EQ(wait_for(start(undisturbed_file, session, complaints)), 0);
    const auto undisturbed = *Journal::open(undisturbed_file);
    ASSERT_EQ(came_to(*killed, session), came_to(*undisturbed, session)) << "session " << session;
    const ReplayReport report = replay(*killed->events(session));
    ASSERT_TRUE(report.identical()) << "session " << session << ": " << report.difference;
  }
  std::ifstream in(complaints);
  const std::string complained((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(complained, "");
  EXPECT_GT(in_mid_session, 0);
  std::printf("%d kills, %d of them in the middle of one of %d sessions\n", kills, in_mid_session, sessions);
}

}  // namespace
}  // namespace fixpoint::agent
