#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tests/sandbox/shared_sandbox.h"

namespace fixpoint::sandbox {
namespace {

/// Each protection switched off on its own: the rest still runs programs, and the verdict says what is missing.
class StrengthTest : public testing::TestWithParam<Protection> {};

INSTANTIATE_TEST_SUITE_P(Without, StrengthTest,
                         testing::Values(Protection::network_namespace, Protection::ipc_namespace, Protection::uts_namespace,
                                         Protection::cgroup_namespace, Protection::separate_uid, Protection::landlock,
                                         Protection::seccomp, Protection::seccomp_names, Protection::cgroup_memory,
                                         Protection::cgroup_pids, Protection::cgroup_cpu, Protection::cgroup_kill),
                         [](const auto& chosen) { return std::string(name(chosen.param)); });

TEST_P(StrengthTest, IsSaidInEveryVerdict) {
  auto sandbox = Sandbox::start({.without = {GetParam()}});
  ASSERT_TRUE(sandbox.has_value()) << sandbox.error().message();
  for (const Start start : {Start::cold, Start::warm}) {
    const Verdict verdict = sandbox->run({.language = Language::python, .source = "print(1)", .start = start});
    EXPECT_TRUE(verdict.ok()) << text_of(verdict);
    EXPECT_FALSE(verdict.protections.has(GetParam()));
    EXPECT_NE(std::find(verdict.protections.missing.begin(), verdict.protections.missing.end(), GetParam()),
              verdict.protections.missing.end());
  }
}

TEST(StrengthTest, DeniedCallWithoutNotificationStillEndsTheRun) {
  auto sandbox = Sandbox::start({.without = {Protection::seccomp_names}});
  ASSERT_TRUE(sandbox.has_value());
  const Verdict verdict =
      sandbox->run({.language = Language::python, .source = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)"});
  EXPECT_TRUE(std::holds_alternative<SyscallDenied>(verdict.outcome)) << text_of(verdict);
}

TEST(StrengthTest, LimitsHoldWithoutCgroups) {
  auto sandbox = Sandbox::start({.without = {Protection::cgroup_memory, Protection::cgroup_pids, Protection::cgroup_cpu,
                                             Protection::cgroup_kill}});
  ASSERT_TRUE(sandbox.has_value());
  const auto run = [&](const char* source) {
    Job job{.language = Language::python, .source = source};
    job.limits = {.cpu = std::chrono::seconds(1), .wall = std::chrono::seconds(60), .memory_bytes = 128 << 20, .processes = 6};
    return sandbox->run(job);
  };
  EXPECT_EQ(name(run("b = bytearray(300 << 20)").outcome), "memory_limit");
  EXPECT_EQ(name(run("import os\nfor i in range(20):\n    if os.fork() == 0: os._exit(os.read(0, 1) == b'x')").outcome),
            "process_limit");
  EXPECT_EQ(name(run("while True: pass").outcome), "cpu_limit");
}

TEST(StrengthTest, OrdinaryUserIsIsolatedInAUserNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
  // Another process, because a user id does not come back.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kNobody = 65534;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    std::string said;
    auto sandbox = Sandbox::start();
    if (!sandbox) {
      said = sandbox.error().message();
    } else {
      for (const Start start : {Start::cold, Start::warm}) {
        const Verdict verdict = sandbox->run({.language = Language::python, .source = "print(1)", .start = start});
        said += std::string(name(verdict.outcome)) + (verdict.protections.has(Protection::user_namespace) ? " userns " : " ");
      }
    }
    (void)!::write(ends[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char said[512] = {};
  (void)!::read(ends[0], said, sizeof said - 1);
  ::close(ends[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_STREQ(said, "ok userns ok userns ");
}

}  // namespace
}  // namespace fixpoint::sandbox
