#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "sandbox/detail/step.h"
#include "tests/sandbox/host_state.h"
#include "tests/sandbox/shared_sandbox.h"

namespace fixpoint::sandbox {
namespace {

using namespace std::chrono_literals;
using detail::Step;

Job program(Start start) {
  Job job{.language = Language::python, .source = "print('ran')", .start = start};
  job.limits.file_bytes = 8 << 20;  // not the prepared size: the step that resizes is taken
  return job;
}

/// Steps of a run that is cold, has a /proc, or is forked from a zygote; steps that this host does not take are left out.
bool taken(Step step, Start start) {
  const Protections& protections = shared_sandbox().protections();
  switch (step) {
    case Step::none:
    case Step::parse_request:
    case Step::mount_proc:
    case Step::count: return false;
    case Step::join_cgroup: return protections.has(Protection::cgroup_memory);
    case Step::drop_groups:
    case Step::drop_uid: return protections.has(Protection::separate_uid);
    case Step::landlock: return protections.has(Protection::landlock);
    case Step::clone_target:
    case Step::execute: return start == Start::cold;
    case Step::fork_zygote:
    case Step::enter_namespaces: return start == Start::warm;
    default: return true;
  }
}

class FaultTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Steps, FaultTest, testing::Range(1, static_cast<int>(Step::count)), [](const auto& chosen) {
  return std::string(detail::kStepNames[static_cast<std::size_t>(chosen.param)]);
});

void expect_nothing_left(int broker) {
  EXPECT_FALSE(process_exists(broker));
  EXPECT_EQ(cgroups_of(broker), std::vector<std::string>());
}

TEST_P(FaultTest, FailedStepIsTheVerdictAndNothingIsLeft) {
  const auto step = static_cast<Step>(GetParam());
  for (const Start start : {Start::cold, Start::warm}) {
    if (!taken(step, start)) continue;
    auto faulty = Sandbox::start({.warm = start == Start::warm, .fault_step = std::string(name(step))});
    ASSERT_TRUE(faulty.has_value()) << faulty.error().message();
    const Verdict verdict = faulty->run(program(start));
    const auto* error = std::get_if<SetupError>(&verdict.outcome);
    ASSERT_NE(error, nullptr) << text_of(verdict);
    EXPECT_EQ(error->step, name(step));
    EXPECT_EQ(verdict.standard_output.bytes, "");
    const int broker = faulty->broker_pid();
    { const Sandbox ended = std::move(*faulty); }
    expect_nothing_left(broker);
  }
  EXPECT_TRUE(shared_sandbox().run(program(Start::warm)).ok());
}

TEST_P(FaultTest, ProcessKilledInAStepNeverPassesAndNothingIsLeft) {
  const auto step = static_cast<Step>(GetParam());
  for (const Start start : {Start::cold, Start::warm}) {
    if (!taken(step, start)) continue;
    auto faulty = Sandbox::start({.warm = start == Start::warm, .fault_step = std::string(name(step)), .fault = Fault::kills});
    ASSERT_TRUE(faulty.has_value()) << faulty.error().message();
    const Verdict verdict = faulty->run(program(start));
    EXPECT_FALSE(verdict.ok()) << name(step) << ": " << text_of(verdict);
    EXPECT_EQ(verdict.standard_output.bytes, "");
    const int broker = faulty->broker_pid();
    { const Sandbox ended = std::move(*faulty); }
    if (broker > 0) {
      EXPECT_FALSE(process_exists(broker));
    }
  }
  EXPECT_TRUE(shared_sandbox().run(program(Start::cold)).ok());
}

/// What waits in the chosen step (Fault::waits), of all that comes of `pid`.
std::vector<int> in_step(int pid) {
  std::vector<int> waiting, all{pid};
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (name_of(all[at]) == "fixpoint-fault") waiting.push_back(all[at]);
    for (const int child : children_of(all[at])) all.push_back(child);
  }
  return waiting;
}

std::vector<int> wait_for_step(int pid) {
  std::vector<int> waiting;
  for (int i = 0; i < 20'000 && (waiting = in_step(pid)).empty(); ++i) ::usleep(1000);
  return waiting;
}

void let_go_on(const std::vector<int>& processes) {
  for (const int pid : processes) ::kill(pid, SIGUSR1);
}

TEST_P(FaultTest, ServiceKilledInAStepLeavesNothing) {
  const auto step = static_cast<Step>(GetParam());
  // The broker that is left becomes ours, so that its end can be waited for.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  for (const Start start : {Start::cold, Start::warm}) {
    if (!taken(step, start)) continue;
    const pid_t service = ::fork();
    if (service == 0) {
      auto sandbox = Sandbox::start({.warm = start == Start::warm, .fault_step = std::string(name(step)), .fault = Fault::waits});
      if (sandbox) (void)sandbox->run(program(start));
      ::_exit(0);
    }
    const std::vector<int> waiting = wait_for_step(service);
    const std::vector<int> brokers = children_of(service);
    ::kill(service, SIGKILL);
    ASSERT_EQ(::waitpid(service, nullptr, 0), service);
    let_go_on(waiting);
    ASSERT_FALSE(waiting.empty()) << "nothing took the step";
    ASSERT_EQ(brokers.size(), 1U);
    ASSERT_EQ(::waitpid(brokers[0], nullptr, 0), brokers[0]);
    for (const int pid : waiting) EXPECT_FALSE(process_exists(pid));
    expect_nothing_left(brokers[0]);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/// What became of a run whose broker, or the parent of what waits in the step (a cold run's init), was killed there.
Verdict run_and_kill(Sandbox& sandbox, Start start, bool broker) {
  Verdict verdict;
  std::atomic<bool> done = false;
  const std::jthread runner([&] {
    verdict = sandbox.run(program(start));
    done = true;
  });
  const std::vector<int> waiting = wait_for_step(::getpid());
  EXPECT_FALSE(waiting.empty()) << "nothing took the step";
  if (!waiting.empty()) ::kill(broker ? sandbox.broker_pid() : parent_of(waiting[0]), SIGKILL);
  let_go_on(waiting);
  // A run of which nobody had spoken yet is started a second time. Nobody is told twice: a word too many would end its program.
  std::vector<int> told = waiting;
  while (!done) {
    std::vector<int> now = in_step(::getpid());
    for (const int pid : now) {
      if (std::find(told.begin(), told.end(), pid) == told.end()) let_go_on({pid});
    }
    told = std::move(now);
    ::usleep(1000);
  }
  return verdict;
}

TEST_P(FaultTest, BrokerKilledWhileItsChildIsInAStepNeverPassesThatRun) {
  const auto step = static_cast<Step>(GetParam());
  if (step <= Step::send_to_init) return;  // the broker's own
  for (const Start start : {Start::cold, Start::warm}) {
    if (!taken(step, start)) continue;
    auto sandbox = Sandbox::start({.warm = start == Start::warm, .fault_step = std::string(name(step)), .fault = Fault::waits});
    ASSERT_TRUE(sandbox.has_value()) << sandbox.error().message();
    const Verdict verdict = run_and_kill(*sandbox, start, true);
    const bool second = verdict.ok() && verdict.standard_output.bytes == "ran\n";
    const bool not_run = std::holds_alternative<InternalError>(verdict.outcome) || std::holds_alternative<SetupError>(verdict.outcome);
    EXPECT_TRUE(second || not_run) << name(step) << ": " << text_of(verdict);
  }
  EXPECT_TRUE(shared_sandbox().run(program(Start::cold)).ok());
}

TEST_P(FaultTest, InitKilledWhileItsProgramIsInAStepNeverPasses) {
  const auto step = static_cast<Step>(GetParam());
  if (step < Step::new_session || !taken(step, Start::cold)) return;
  auto sandbox = Sandbox::start({.warm = false, .fault_step = std::string(name(step)), .fault = Fault::waits});
  ASSERT_TRUE(sandbox.has_value()) << sandbox.error().message();
  const Verdict verdict = run_and_kill(*sandbox, Start::cold, false);
  EXPECT_TRUE(std::holds_alternative<InternalError>(verdict.outcome)) << name(step) << ": " << text_of(verdict);
  const int broker = sandbox->broker_pid();
  { const Sandbox ended = std::move(*sandbox); }
  expect_nothing_left(broker);
}

/// A program that says on its judge channel that it runs, and then waits for ever.
struct Conversation {
  std::array<int, 2> questions{-1, -1};
  std::array<int, 2> answers{-1, -1};

  Conversation() {
    if (::pipe(questions.data()) != 0 || ::pipe(answers.data()) != 0) throw std::runtime_error("pipe");
  }
  ~Conversation() {
    for (const int fd : {questions[0], questions[1], answers[0], answers[1]}) ::close(fd);
  }
  [[nodiscard]] Job job(Start start) const {
    Job waiting{.language = Language::python, .source = "import os, time\nos.write(4, b'x')\ntime.sleep(1000)", .start = start};
    waiting.limits.wall = 120s;
    waiting.judge = JudgeChannel{questions[0], answers[1]};
    return waiting;
  }
  void wait_until_it_runs() const {
    char byte = 0;
    EXPECT_EQ(::read(answers[0], &byte, 1), 1);
  }
};

TEST(KillTest, BrokerKilledWhileAProgramRunsIsAnInternalErrorAndTheNextRunWorks) {
  for (const Start start : {Start::cold, Start::warm}) {
    auto sandbox = Sandbox::start();
    ASSERT_TRUE(sandbox.has_value());
    const Conversation conversation;
    Verdict verdict;
    const int broker = sandbox->broker_pid();
    {
      std::jthread runner([&] { verdict = sandbox->run(conversation.job(start)); });
      conversation.wait_until_it_runs();
      ASSERT_EQ(::kill(broker, SIGKILL), 0);
    }
    EXPECT_TRUE(std::holds_alternative<InternalError>(verdict.outcome)) << text_of(verdict);
    const Verdict next = sandbox->run(program(start));
    EXPECT_TRUE(next.ok()) << text_of(next);
    EXPECT_NE(sandbox->broker_pid(), broker);
    // The new broker removed what the old one could not.
    EXPECT_EQ(cgroups_of(broker), std::vector<std::string>());
  }
}

TEST(KillTest, ServiceKilledWhileAProgramRunsLeavesNothing) {
  std::array<int, 2> broker_pipe{};
  ASSERT_EQ(::pipe(broker_pipe.data()), 0);
  const Conversation conversation;
  const pid_t service = ::fork();
  if (service == 0) {
    auto sandbox = Sandbox::start();
    if (!sandbox) ::_exit(1);
    const int broker = sandbox->broker_pid();
    (void)!::write(broker_pipe[1], &broker, sizeof broker);
    (void)sandbox->run(conversation.job(Start::cold));
    ::_exit(0);
  }
  int broker = 0;
  ASSERT_EQ(::read(broker_pipe[0], &broker, sizeof broker), static_cast<ssize_t>(sizeof broker));
  conversation.wait_until_it_runs();
  ASSERT_EQ(::kill(service, SIGKILL), 0);
  ASSERT_EQ(::waitpid(service, nullptr, 0), service);
  // The program holds the last other end of this pipe: its end of file is the program's end.
  ::close(conversation.answers[1]);
  char byte = 0;
  EXPECT_EQ(::read(conversation.answers[0], &byte, 1), 0);
  // Then the broker, whose end nobody here can wait for, leaves.
  for (int i = 0; i < 20'000 && process_exists(broker); ++i) ::usleep(1000);
  expect_nothing_left(broker);
  ::close(broker_pipe[0]);
  ::close(broker_pipe[1]);
}

TEST(KillTest, ProgramsInitKilledFromOutsideIsAnInternalError) {
  const Conversation conversation;
  Verdict verdict;
  auto sandbox = Sandbox::start({.warm = false});
  ASSERT_TRUE(sandbox.has_value());
  {
    std::jthread runner([&] { verdict = sandbox->run(conversation.job(Start::cold)); });
    conversation.wait_until_it_runs();
    const std::string broker = std::to_string(sandbox->broker_pid());
    std::ifstream children("/proc/" + broker + "/task/" + broker + "/children");
    for (int init = 0; children >> init;) ::kill(init, SIGKILL);
  }
  EXPECT_TRUE(std::holds_alternative<InternalError>(verdict.outcome)) << text_of(verdict);
  EXPECT_TRUE(sandbox->run(program(Start::cold)).ok());
}

/// FIXPOINT_LEAK_RUNS: how many, in a longer run by hand.
TEST(LeakTest, ThousandsOfRunsLeaveEverythingAtItsBaseline) {
  auto sandbox = Sandbox::start();
  ASSERT_TRUE(sandbox.has_value());
  const Job quick{.language = Language::c, .source = "int main(void) { return 0; }"};
  const Job forked{.language = Language::python, .source = "pass"};
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Verdict verdict = sandbox->run(i % 4 == 0 ? forked : quick);
      if (i % 10'000 == 9'999) std::printf("%d runs\n", i + 1), std::fflush(stdout);
      ASSERT_TRUE(verdict.ok()) << text_of(verdict);
    }
  };
  run(200);
  const std::string broker = std::to_string(sandbox->broker_pid());
  const ProcessState service_before = state_of("self");
  const ProcessState broker_before = state_of(broker);
  const std::size_t files_before = count_entries("/tmp");
  const char* more = std::getenv("FIXPOINT_LEAK_RUNS");
  run(more != nullptr ? std::atoi(more) : 1000);
  const ProcessState service_after = state_of("self");
  const ProcessState broker_after = state_of(broker);
  EXPECT_EQ(service_after.descriptors, service_before.descriptors);
  EXPECT_EQ(service_after.mounts, service_before.mounts);
  EXPECT_EQ(broker_after.mounts, broker_before.mounts);
  // Cells and networks that are kept ready come and go; their number is bounded.
  constexpr std::size_t kReadyDescriptors = 64;
  EXPECT_LE(broker_after.descriptors, broker_before.descriptors + kReadyDescriptors);
  EXPECT_LE(broker_after.children, broker_before.children + 4);
  EXPECT_LE(broker_after.resident_kib, broker_before.resident_kib + 1024);
  EXPECT_LE(service_after.resident_kib, service_before.resident_kib + 8192);
  EXPECT_LE(count_entries("/tmp"), files_before + 64);  // other programs use it, too
  const int pid = sandbox->broker_pid();
  { const Sandbox ended = std::move(*sandbox); }
  expect_nothing_left(pid);
}

}  // namespace
}  // namespace fixpoint::sandbox
