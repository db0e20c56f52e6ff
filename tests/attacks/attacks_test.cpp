// Every hostile program, in every mode that this host can show.
#include "attack_program.h"
#include "host_witness.h"

#include <gtest/gtest.h>

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

namespace fixpoint::sandbox::attacks {
namespace {

constexpr std::size_t fewest_attacks = 120;
constexpr uid_t ordinary_user = 65534;

const std::filesystem::path& root() {
  static const std::filesystem::path path = ATTACKS_DIR;
  return path;
}

std::string attack_header() {
  std::ifstream in(root() / "attack.h");
  return {std::istreambuf_iterator<char>(in), {}};
}

// What came of a whole suite, as lines that can cross a pipe.
struct SuiteResult {
  std::size_t held = 0;
  std::vector<std::string> complaints;
  std::vector<std::string> not_run;
};

class Suite {
 public:
  Suite(Sandbox& sandbox, std::string mode) : sandbox_(sandbox), mode_(std::move(mode)) {}

  SuiteResult run(const std::vector<AttackProgram>& attacks, std::size_t threads) {
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> workers;
      for (std::size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
          for (std::size_t at = next++; at < attacks.size(); at = next++) try_one(attacks[at]);
        });
      }
    }
    for (const std::string& change : witness_.changes()) result_.complaints.push_back("[" + mode_ + "] the host: " + change);
    return std::move(result_);
  }

 private:
  void try_one(const AttackProgram& attack) {
    if (sandbox_.toolchains().find(attack.language) == nullptr) return note(&SuiteResult::not_run, attack.name + ": no toolchain for " + std::string(name(attack.language)));
    const Job job = job_of(attack, witness_.placeholders(), header_);
    const int rounds = attack.has("repeat") ? std::stoi(attack.note("repeat")) : 1;
    for (int round = 0; round < rounds; ++round) {
      const Verdict verdict = sandbox_.run(job);
      std::string why = complaint(attack, verdict, mode_);
      if ((verdict.standard_output.bytes + verdict.standard_error.bytes).find(witness_.secret()) != std::string::npos && !attack.has("arguments")) {
        why = attack.name + " [" + mode_ + "]: the host's secret came out";
      }
      if (!why.empty()) return note(&SuiteResult::complaints, why);
    }
    const std::lock_guard lock(mutex_);
    ++result_.held;
  }

  void note(std::vector<std::string> SuiteResult::*where, std::string what) {
    const std::lock_guard lock(mutex_);
    (result_.*where).push_back(std::move(what));
  }

  Sandbox& sandbox_;
  std::string mode_;
  HostWitness witness_;
  const std::string header_ = attack_header();
  std::mutex mutex_;
  SuiteResult result_;
};

// Prints what was not run, by name, and fails for every attack that was not held.
void judge(const SuiteResult& result, const std::string& mode) {
  std::cout << "[" << mode << "] held: " << result.held << ", not held: " << result.complaints.size() << ", not run: " << result.not_run.size() << "\n";
  for (const std::string& what : result.not_run) std::cout << "[" << mode << "] NOT RUN " << what << "\n";
  for (const std::string& what : result.complaints) ADD_FAILURE() << what;
}

std::string missing_text(const Sandbox& sandbox) {
  std::string out;
  for (const Protection protection : sandbox.protections().missing) out += " " + std::string(name(protection));
  return out;
}

void run_mode(const std::string& mode, Options options) {
  auto sandbox = Sandbox::start(std::move(options));
  if (!sandbox) {
    std::cout << "[" << mode << "] NOT RUN, every attack: " << sandbox.error().message() << "\n";
    GTEST_SKIP() << "this host cannot show the mode " << mode << ": " << sandbox.error().message();
  }
  std::cout << "[" << mode << "] missing:" << missing_text(*sandbox) << "\n";
  judge(Suite(*sandbox, mode).run(load_attacks(root()), 3), mode);
}

// Runs `body` in a child process as another user and brings its result home.
SuiteResult as_user(uid_t user, const std::function<SuiteResult()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const bool changed = ::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
    std::string text;
    if (!changed) {
      text = "C cannot become an ordinary user\n";
    } else {
      const SuiteResult result = body();
      text = "H" + std::to_string(result.held) + "\n";
      for (std::string line : result.complaints) {
        std::replace(line.begin(), line.end(), '\n', ' ');
        text += "C" + line + "\n";
      }
      for (const std::string& line : result.not_run) text += "N" + line + "\n";
    }
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  SuiteResult result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] == 'H') result.held = std::stoul(line.substr(1));
    if (line[0] == 'C') result.complaints.push_back(line.substr(1));
    if (line[0] == 'N') result.not_run.push_back(line.substr(1));
  }
  if (status != 0 || text.empty()) result.complaints.push_back("the ordinary user's process died with status " + std::to_string(status));
  return result;
}

TEST(AttackSuiteTest, HasItsHundredAndTwentyProgramsOrMore) {
  const auto attacks = load_attacks(root());
  EXPECT_GE(attacks.size(), fewest_attacks);
  std::set<std::string> names;
  for (const auto& attack : attacks) EXPECT_TRUE(names.insert(attack.name).second) << attack.name << " stands twice";
}

TEST(AttackSuiteTest, HoldsWithEveryProtectionThatTheHostHas) { run_mode("full", {}); }

TEST(AttackSuiteTest, HoldsForAnOrdinaryUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process is an ordinary user: the suite above has shown it";
  const SuiteResult result = as_user(ordinary_user, [] {
    auto sandbox = Sandbox::start();
    if (!sandbox) return SuiteResult{.not_run = {"every attack: " + sandbox.error().message()}};
    return Suite(*sandbox, "user").run(load_attacks(root()), 3);
  });
  judge(result, "user");
}

TEST(AttackSuiteTest, HoldsWithoutCgroups) {
  run_mode("no_cgroups", {.without = {Protection::cgroup_memory, Protection::cgroup_pids, Protection::cgroup_cpu, Protection::cgroup_kill}});
}

TEST(AttackSuiteTest, HoldsWithoutLandlock) { run_mode("no_landlock", {.without = {Protection::landlock}}); }

TEST(AttackSuiteTest, HoldsWithoutNamesOfDeniedCalls) { run_mode("no_names", {.without = {Protection::seccomp_names}}); }

TEST(AttackSuiteTest, HoldsWithoutWarmInterpreters) { run_mode("cold", {.warm = false}); }

TEST(AttackSuiteTest, HoldsWithFewerNamespacesByTheOperatorsWord) {
  run_mode("fewer_namespaces", {.accept = Strength::degraded,
                                .without = {Protection::network_namespace, Protection::ipc_namespace, Protection::uts_namespace, Protection::cgroup_namespace}});
}

TEST(AttackSuiteTest, TwentyAtOnceDoNotChangeAGoodNeighboursResult) {
  auto sandbox = Sandbox::start();
  ASSERT_TRUE(sandbox) << sandbox.error().message();
  const std::set<std::string> loud = {
      "processes_time/fork_bomb", "processes_time/fork_bomb_python", "processes_time/thread_bomb", "processes_time/spin_in_threads", "processes_time/kill_everything",
      "processes_time/daemon_outlives_run", "processes_time/spin_in_children", "memory/touch_memory", "memory/many_children_each_small", "memory/memory_in_pipes",
      "memory/memory_in_files", "memory/list_doubling", "memory/memory_in_memfd", "files/fill_files", "files/fill_inodes", "output/flood_stdout", "output/flood_gigabytes",
      "output/flood_from_children", "network_ipc/abstract_rendezvous", "syscalls/ptrace_attach_init"};
  std::vector<AttackProgram> attacks = load_attacks(root());
  std::erase_if(attacks, [&](const AttackProgram& attack) { return !loud.contains(attack.name); });
  ASSERT_EQ(attacks.size(), loud.size());

  Job neighbour{.language = Language::python,
                .source = "import hashlib, os\nh = hashlib.sha256()\nfor i in range(20000):\n    h.update(str(i).encode())\n"
                          "open('/tmp/mine', 'w').write('x' * 100000)\nprint(h.hexdigest(), os.path.getsize('/tmp/mine'), sorted(os.listdir('/tmp')))\n"};
  const Verdict alone = sandbox->run(neighbour);
  ASSERT_TRUE(alone.ok()) << describe(alone.outcome) << alone.standard_error.bytes;
  std::size_t runs = 0;
  std::jthread beside([&](const std::stop_token& over) {
    do {
      const Verdict verdict = sandbox->run(neighbour);
      EXPECT_TRUE(verdict.ok()) << "the neighbour " << describe(verdict.outcome) << verdict.standard_error.bytes;
      EXPECT_EQ(verdict.standard_output.bytes, alone.standard_output.bytes);
      ++runs;
    } while (!over.stop_requested());
  });
  const SuiteResult result = Suite(*sandbox, "twenty").run(attacks, attacks.size());
  beside.request_stop();
  beside.join();
  std::cout << "the neighbour ran " << runs << " times\n";
  judge(result, "twenty");
}

TEST(JobFilesTest, NamesThatLeadElsewhereAreRefusedBeforeAnythingIsWritten) {
  auto sandbox = Sandbox::start({.warm = false});
  ASSERT_TRUE(sandbox) << sandbox.error().message();
  for (const std::string& path : {std::string("../x"), std::string("a/../../x"), std::string("/abs"), std::string("a\0b", 3), std::string(5000, 'a'), std::string("-rf"), std::string(""),
                                  std::string("."), std::string("a//b"), std::string("a/"), std::string("a/b/c/d/e/f"), std::string("main.py"), std::string("a b"), std::string("x\n")}) {
    Job job{.language = Language::python, .source = "print('ran')\n"};
    job.files.push_back({path, "content"});
    const Verdict verdict = sandbox->run(job);
    EXPECT_TRUE(std::holds_alternative<SetupError>(verdict.outcome)) << "'" << path.substr(0, 40) << "' " << describe(verdict.outcome);
    EXPECT_EQ(verdict.standard_output.bytes, "") << path.substr(0, 40);
  }
}

}  // namespace
}  // namespace fixpoint::sandbox::attacks
