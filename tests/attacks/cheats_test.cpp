// Programs that want a pass without solving their task: f(x) == 2 * x. Every one, under every kind of check, scores 0.
#include "attack_program.h"
#include "sandbox/check.h"

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <thread>

namespace fixpoint::sandbox::attacks {
namespace {

constexpr std::size_t fewest_cheats = 25;

Sandbox& shared_sandbox() {
  static auto sandbox = Sandbox::start();
  if (!sandbox) throw std::runtime_error("no sandbox on this host: " + sandbox.error().message());
  return *sandbox;
}

struct Style {
  std::string name;
  Check check;
  bool in_process = false;
};

CallCheck calls() {
  CallCheck out{.entry_point = "f"};
  for (int x = 1; x <= 3; ++x) out.tests.push_back({.arguments = {Value::of(x)}, .expected = Value::of(2 * x)});
  return out;
}

std::vector<Style> python_styles() {
  const std::string check_function =
      "def check(candidate):\n    assert candidate(1) == 2\n    assert abs(candidate(2) - 4) < 1e-9\n    assert candidate(3) in (6,)\n    assert not candidate(4) != 8\n";
  const std::string unittest_class =
      "import unittest\nfrom solution import f\n\nclass Tests(unittest.TestCase):\n    def test_values(self):\n        self.assertEqual(f(1), 2)\n"
      "        self.assertAlmostEqual(f(2), 4)\n    def test_list(self):\n        self.assertEqual([f(3)], [6])\n        self.assertTrue(f(4) == 8)\n";
  const std::string asserts = "assert f(1) == 2\nassert f(2) == 4\n";
  const auto text = [](const std::string& tests, Isolation isolation) {
    return TextCheck{.tests = tests, .entry_point = "f", .isolation = isolation};
  };
  return {{"calls", calls()},
          {"tolerant calls", [] {
             CallCheck out = calls();
             out.equality = {.absolute_tolerance = 1e-6, .lists_equal_tuples = true, .evalplus = true};
             return out;
           }()},
          {"assert list", text(asserts, Isolation::automatic)},
          {"check function apart", text(check_function, Isolation::separate)},
          {"unittest apart", text(unittest_class, Isolation::separate)},
          {"assert list inside", text(asserts, Isolation::in_process), true},
          {"check function inside", text(check_function, Isolation::in_process), true},
          {"unittest inside", text(unittest_class, Isolation::in_process), true}};
}

std::vector<Style> styles_of(Language language) {
  const auto text = [](const std::string& tests, Isolation isolation) {
    return TextCheck{.tests = tests, .entry_point = "f", .isolation = isolation};
  };
  switch (language) {
    case Language::python: return python_styles();
    case Language::javascript: {
      const std::string tests = "const assert = require('node:assert');\nassert.deepEqual(f(1), 2);\nassert.strictEqual(f(2), 4);\nassert(f(3) === 6);\n";
      return {{"calls", calls()}, {"tests apart", text(tests, Isolation::separate)}, {"tests inside", text(tests, Isolation::in_process), true}};
    }
    case Language::cpp:
      return {{"calls", calls()}, {"tests inside", text("#include <cassert>\nint main() { assert(f(1) == 2); assert(f(2) == 4); }\n", Isolation::automatic), true}};
    default: return {{"tests inside", text("[ \"$(f 1)\" = 2 ] || exit 1\n[[ \"$(f 2)\" == 4 ]] || exit 1\n", Isolation::automatic), true}};
  }
}

CheckOptions options(std::chrono::milliseconds call_wall = std::chrono::seconds(10)) {
  CheckOptions out;
  // A hanging cheat costs its call and the start of its jail: the tests' result does not depend on either.
  out.limits = {.cpu = std::chrono::seconds(3), .wall = std::chrono::seconds(10), .memory_bytes = 256 << 20};
  out.call_wall = call_wall;
  return out;
}

std::string explain(const CheckResult& result) {
  std::string out = result.error;
  if (const TestResult* test = result.first_failure()) out += " " + std::string(name(test->outcome)) + " " + test->test + ": " + test->message + " got " + test->got;
  return out;
}

TEST(CheatSuiteTest, TheRightProgramPassesEveryCheck) {
  const std::vector<std::pair<Language, const char*>> right = {{Language::python, "def f(x):\n    return 2 * x\n"},
                                                              {Language::javascript, "function f(x) { return 2 * x; }"},
                                                              {Language::cpp, "int f(int x) { return 2 * x; }"},
                                                              {Language::bash, "f() { echo $(( 2 * $1 )); }"}};
  for (const auto& [language, source] : right) {
    for (const Style& style : styles_of(language)) {
      const CheckResult result = check(shared_sandbox(), {language, source}, style.check, options());
      EXPECT_TRUE(result.passed) << name(language) << " " << style.name << ": " << explain(result);
      EXPECT_EQ(result.level == CheckLevel::in_process, style.in_process) << style.name;
    }
  }
}

TEST(CheatSuiteTest, EveryCheatScoresNothing) {
  const auto cheats = load_programs(ATTACKS_DIR, {"verdict_integrity"});
  ASSERT_GE(cheats.size(), fewest_cheats);
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  std::size_t checks = 0;
  std::vector<std::string> forged_in_process;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 6; ++i) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < cheats.size(); at = next++) {
          const AttackProgram& cheat = cheats[at];
          for (const Style& style : styles_of(cheat.language)) {
            const CheckResult result = check(shared_sandbox(), {cheat.language, cheat.source}, style.check, options(std::chrono::milliseconds(1500)));
            const std::lock_guard lock(mutex);
            ++checks;
            if (!result.passed) continue;
            if (style.in_process && cheat.has("in-process")) {
              forged_in_process.push_back(cheat.name + " (" + style.name + ")");
            } else {
              ADD_FAILURE() << cheat.name << " passed under " << style.name;
            }
          }
        }
      });
    }
  }
  std::cout << cheats.size() << " cheats, " << checks << " checks\n";
  // The weakest level says of itself that it can be forged. These did it, which is why the level is part of every result.
  for (const std::string& what : forged_in_process) std::cout << "FORGED AT LEVEL in_process: " << what << "\n";
}

}  // namespace
}  // namespace fixpoint::sandbox::attacks
