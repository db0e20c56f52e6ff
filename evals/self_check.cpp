#include "evals/self_check.h"

#include <chrono>
#include <optional>
#include <set>

#include "evals/judge.h"

namespace fixpoint::evals {
namespace {

/// A task of adding two numbers, and programs for it whose verdict is known.
struct Probe {
  Task task;
  std::string good;
  std::string bad;
  std::vector<std::string> cheats;
  bool closed = true;  // Program::closed of all of them
};

constexpr const char* kAlwaysEqual =
    "class Anything(int):\n    def __eq__(self, other):\n        return True\n    def __ne__(self, other):\n        return False\n"
    "    __hash__ = int.__hash__\n\ndef add(a, b):\n    return Anything()\n";
constexpr const char* kLeaves = "import os\ndef add(a, b):\n    os._exit(0)\n";
constexpr const char* kLeavesAtOnce = "import sys\nprint('passed')\nsys.exit(0)\n";

Probe python_probe(Tests tests) {
  Probe probe;
  probe.task.id = "self-check";
  probe.task.language = "python";
  probe.task.entry_point = "add";
  probe.task.hidden = std::move(tests);
  probe.task.cpu_seconds = 3;
  probe.good = "def add(a, b):\n    return a + b\n";
  probe.bad = "def add(a, b):\n    return a - b\n";
  probe.cheats = {kAlwaysEqual, kLeaves, kLeavesAtOnce};
  probe.task.reference = probe.good;
  return probe;
}

Probe stdio_probe() {
  Probe probe = python_probe(Stdio{{{"1 2\n", "3\n"}, {"-1 5\n", "4\n"}}});
  probe.good = "a, b = map(int, input().split())\nprint(a + b)\n";
  probe.bad = "a, b = map(int, input().split())\nprint(a - b)\n";
  probe.cheats = {"print('passed')\n", "import os\nos._exit(0)\n"};
  return probe;
}

sandbox::Value two(int a, int b) { return sandbox::Value::list_of({sandbox::Value::of(a), sandbox::Value::of(b)}); }

/// Nothing for a language of which no right program is known here.
std::optional<Probe> tail_probe(const std::string& language) {
  Probe probe;
  probe.task.id = "self-check";
  probe.task.language = language;
  probe.task.entry_point = "add";
  probe.task.cpu_seconds = 15;
  probe.closed = false;
  if (language == "cpp") {
    const std::string head = "#include <cassert>\n#include <cstdlib>\nlong add(long a, long b) {\n";
    probe.good = head + "  return a + b;";
    probe.bad = head + "  return a - b;";
    probe.cheats = {head + "  std::exit(0);", head + "  _Exit(0);"};
    probe.task.hidden = ProgramTail{"}\nint main() {\n    auto candidate = add;\n    assert(candidate(1, 2) == 3);\n    assert(candidate(-1, 5) == 4);\n}\n"};
  } else if (language == "javascript") {
    const std::string head = "function add(a, b) {\n";
    probe.good = head + "  return a + b;\n}";
    probe.bad = head + "  return a - b;\n}";
    probe.cheats = {head + "  process.exit(0);\n}", "process.exit(0);\n" + head + "}", "require('node:assert').deepEqual = () => {};\n" + head + "}"};
    probe.closed = true;
    probe.task.hidden = ProgramTail{
        "const assert = require('node:assert');\n\n\nfunction test() {\n  let candidate = add;\n  assert.deepEqual(candidate(1, 2),3);\n"
        "  assert.deepEqual(candidate(-1, 5),4);\n}\n\ntest();"};
  } else if (language == "bash") {
    const std::string head = "#!/bin/bash\nadd() {\n";
    probe.good = head + "  echo $(($1 + $2))";
    probe.bad = head + "  echo $(($1 - $2))";
    probe.cheats = {head + "  exit 0", "trap 'exit 0' EXIT\nset() { :; }\n" + head + "  false"};
    probe.task.hidden = ProgramTail{
        "}\n\ncandidate() {\n    add \"$@\"\n}\n\nset -e\nrun_test() {\n    [[ $(candidate \"1\" \"2\") = \"3\" ]]\n    [[ $(candidate \"-1\" \"5\") = \"4\" ]]\n}\n\nrun_test"};
  } else if (language == "java") {
    const std::string head = "class Problem {\n    public static long add(long a, long b) {\n";
    probe.good = head + "        return a + b;\n";
    probe.bad = head + "        return a - b;\n";
    probe.cheats = {head + "        System.exit(0); return 0;\n"};
    probe.task.hidden = ProgramTail{"    }\n    public static void main(String[] args) {\n    assert(add(1, 2) == 3);\n    assert(add(-1, 5) == 4);\n    }\n\n}\n"};
  } else if (language == "rust") {
    const std::string head = "fn add(a: isize, b: isize) -> isize {\n";
    probe.good = head + "    a + b";
    probe.bad = head + "    a - b";
    probe.cheats = {head + "    std::process::exit(0)"};
    probe.task.hidden = ProgramTail{"}\n\nfn main() {\n    let candidate = add;\n    assert_eq!(candidate(1, 2), 3);\n    assert_eq!(candidate(-1, 5), 4);\n}\n"};
  } else if (language == "python") {
    Probe python = python_probe(ProgramTail{"assert add(1, 2) == 3\nassert add(-1, 5) == 4\n"});
    python.cheats = {kLeaves, kLeavesAtOnce};
    return python;
  } else {
    return std::nullopt;
  }
  return probe;
}

std::optional<Probe> probe_like(const Task& task) {
  struct Make {
    const Task& task;
    std::optional<Probe> operator()(const CheckFunction&) const {
      return python_probe(CheckFunction{"def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-1, 5) == 4\n"});
    }
    std::optional<Probe> operator()(const Asserts&) const { return python_probe(Asserts{"", {"assert add(1, 2) == 3", "assert add(-1, 5) == 4"}}); }
    std::optional<Probe> operator()(const Differential&) const { return python_probe(Differential{.base = {two(1, 2)}, .plus = {two(-1, 5)}}); }
    std::optional<Probe> operator()(const ProgramTail&) const { return tail_probe(task.language); }
    std::optional<Probe> operator()(const Stdio&) const { return stdio_probe(); }
    std::optional<Probe> operator()(const JsonCalls&) const {
      return python_probe(JsonCalls{{{two(1, 2), sandbox::Value::of(3), std::nullopt}, {two(-1, 5), sandbox::Value::of(4), std::nullopt}}});
    }
  };
  return std::visit(Make{task}, task.hidden);
}

class Checker {
 public:
  Checker(sandbox::Sandbox& sandbox, const Benchmark& benchmark, std::stop_token stop) : judge_(sandbox, benchmark), stop_(std::move(stop)) {}

  void expect(std::size_t task, const std::string& what, const Program& program, bool passes, SelfCheck& out) {
    ++out.programs;
    const Judgement judgement = judge_.judge(task, program, stop_);
    if (judgement.passed() == passes && judgement.outcome != Outcome::not_judged) return;
    out.failures.push_back(what + (passes ? " does not pass: " : " is not refused: ") + std::string(to_string(judgement.outcome)) +
                           (judgement.message.empty() ? "" : " (" + judgement.message + ")"));
  }

 private:
  Judge judge_;
  std::stop_token stop_;
};

void check_probe(sandbox::Sandbox& sandbox, const Probe& probe, const std::stop_token& stop, SelfCheck& out) {
  Benchmark one;
  one.name = "self-check";
  one.tasks = {probe.task};
  Checker checker(sandbox, one, stop);
  checker.expect(0, "a program that is right", {probe.good, probe.closed}, true, out);
  checker.expect(0, "a program that is wrong", {probe.bad, probe.closed}, false, out);
  checker.expect(0, "an empty program", {"", true}, false, out);
  for (std::size_t i = 0; i < probe.cheats.size(); ++i) {
    checker.expect(0, "cheat " + std::to_string(i + 1), {probe.cheats[i], probe.closed}, false, out);
  }
}

}  // namespace

SelfCheck self_check(sandbox::Sandbox& sandbox, const Benchmark& benchmark, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  SelfCheck out;
  std::set<std::size_t> kinds;  // of tests; a benchmark may mix them
  for (const Task& task : benchmark.tasks) {
    if (!kinds.insert(task.hidden.index()).second) continue;
    if (const auto probe = probe_like(task)) {
      check_probe(sandbox, *probe, stop, out);
    } else {
      out.failures.push_back("for tests in " + task.language + " no program is known that must pass");
    }
  }
  for (std::size_t i = 0; i < benchmark.tasks.size(); ++i) {
    const Task& task = benchmark.tasks[i];
    if (task.reference.empty()) continue;
    Checker checker(sandbox, benchmark, stop);
    checker.expect(i, "the data's solution of " + task.id, {task.reference, true}, true, out);
    checker.expect(i, "an empty program for " + task.id, {"", true}, false, out);
    break;
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace fixpoint::evals
