#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/sandbox/shared_sandbox.h"

namespace fixpoint::sandbox {
namespace {

using namespace std::chrono_literals;

Job job(Language language, std::string source) { return {.language = language, .source = std::move(source)}; }
Job python(std::string source) { return job(Language::python, std::move(source)); }
Job c(std::string source) { return job(Language::c, std::move(source)); }

template <class T>
bool is(const Verdict& verdict) {
  return std::holds_alternative<T>(verdict.outcome);
}

/// Python programs run twice: in a fork of the prepared interpreter and in a new one.
class PythonRunTest : public testing::TestWithParam<Start> {
 protected:
  static Verdict run(std::string source, Limits limits = {}) {
    Job program = python(std::move(source));
    program.limits = limits;
    program.start = GetParam();
    return shared_sandbox().run(program);
  }
};

INSTANTIATE_TEST_SUITE_P(Starts, PythonRunTest, testing::Values(Start::warm, Start::cold),
                         [](const auto& chosen) { return chosen.param == Start::warm ? "Warm" : "Cold"; });

TEST_P(PythonRunTest, ReadsItsInputAndWritesItsOutput) {
  Job program = python("print(sum(map(int, input().split())))");
  program.input = "1 2 3\n";
  program.start = GetParam();
  const Verdict verdict = shared_sandbox().run(program);
  EXPECT_TRUE(verdict.ok()) << text_of(verdict);
  EXPECT_EQ(verdict.standard_output.bytes, "6\n");
  EXPECT_EQ(verdict.warm, GetParam() == Start::warm);
}

TEST_P(PythonRunTest, SeesArgumentsFilesAndEnvironment) {
  Job program = python("import sys, os, helper\nprint(sys.argv[1:], helper.x, os.environ['WORD'], os.getcwd(), __name__)");
  program.arguments = {"a", "b c"};
  program.files = {{"helper.py", "x = 41\n", false}};
  program.environment = {{"WORD", "w"}};
  program.start = GetParam();
  const Verdict verdict = shared_sandbox().run(program);
  EXPECT_EQ(verdict.standard_output.bytes, "['a', 'b c'] 41 w /sandbox/box __main__\n") << text_of(verdict);
}

TEST_P(PythonRunTest, ExceptionEndsWithATracebackOfTheProgramAlone) {
  const Verdict verdict = run("def f():\n    return 1 / 0\nf()\n");
  ASSERT_TRUE(is<ExitNonzero>(verdict)) << text_of(verdict);
  EXPECT_EQ(std::get<ExitNonzero>(verdict.outcome).code, 1);
  EXPECT_NE(verdict.standard_error.bytes.find("main.py\", line 2, in f"), std::string::npos);
  EXPECT_NE(verdict.standard_error.bytes.find("ZeroDivisionError"), std::string::npos);
  EXPECT_EQ(verdict.standard_error.bytes.find("zygote"), std::string::npos);
}

TEST_P(PythonRunTest, ExitCodesAreKept) {
  EXPECT_EQ(std::get<ExitNonzero>(run("raise SystemExit(7)").outcome).code, 7);
  EXPECT_EQ(std::get<ExitNonzero>(run("import sys; sys.exit('words')").outcome).code, 1);
  EXPECT_EQ(std::get<ExitNonzero>(run("import os; os._exit(9)").outcome).code, 9);
  EXPECT_TRUE(run("import sys; sys.exit()").ok());
}

TEST_P(PythonRunTest, ExitHandlersThreadsAndDestructorsRun) {
  const Verdict verdict = run(
      "import atexit, threading\natexit.register(print, 'handler')\n"
      "class T:\n    def __del__(self): print('gone')\nt = T()\n"
      "threading.Thread(target=lambda: print('thread')).start()\n");
  EXPECT_EQ(verdict.standard_output.bytes, "thread\nhandler\ngone\n") << text_of(verdict);
}

TEST_P(PythonRunTest, SignalIsNamed) {
  const Verdict verdict = run("import os; os.kill(os.getpid(), 11)");
  ASSERT_TRUE(is<Signalled>(verdict)) << text_of(verdict);
  EXPECT_EQ(std::get<Signalled>(verdict.outcome).number, 11);
}

TEST_P(PythonRunTest, EndlessLoopHitsTheCpuLimit) {
  const Verdict verdict = run("while True: pass", {.cpu = 200ms, .wall = 60s});
  EXPECT_TRUE(is<CpuLimit>(verdict)) << text_of(verdict);
}

TEST_P(PythonRunTest, SleepHitsTheWallLimit) {
  const Verdict verdict = run("import time; time.sleep(1000)", {.cpu = 10s, .wall = 300ms});
  EXPECT_TRUE(is<WallLimit>(verdict)) << text_of(verdict);
}

TEST_P(PythonRunTest, FloodHitsTheOutputLimitAndKeepsTheHead) {
  const Verdict verdict = run("while True: print('x' * 1000)", {.output_bytes = 5000});
  EXPECT_TRUE(is<OutputLimit>(verdict)) << text_of(verdict);
  EXPECT_EQ(verdict.standard_output.bytes.size(), 5000U);
  EXPECT_TRUE(verdict.standard_output.truncated);
}

TEST_P(PythonRunTest, MemoryIsToldApartFromASignal) {
  const Verdict verdict = run("b = bytearray(300 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1",
                              {.cpu = 30s, .wall = 120s, .memory_bytes = 64 << 20});
  EXPECT_TRUE(is<MemoryLimit>(verdict)) << text_of(verdict);
}

TEST_P(PythonRunTest, ForkBombHitsTheProcessLimit) {
  const Verdict verdict = run("import os\nwhile True: os.fork()", {.cpu = 30s, .wall = 120s, .processes = 8});
  EXPECT_TRUE(is<ProcessLimit>(verdict)) << text_of(verdict);
}

TEST_P(PythonRunTest, BigFileHitsTheFileLimit) {
  const Verdict verdict = run("open('f', 'wb').write(b'x' * (4 << 20))", {.file_bytes = 1 << 20});
  EXPECT_TRUE(is<FileLimit>(verdict)) << text_of(verdict);
}

TEST_P(PythonRunTest, ManyFilesHitTheFileLimit) {
  const Verdict verdict = run("for i in range(1000): open(str(i), 'w').close()", {.inodes = 50});
  EXPECT_TRUE(is<FileLimit>(verdict)) << text_of(verdict);
}

TEST_P(PythonRunTest, DeniedSystemCallIsNamed) {
  const Verdict verdict = run("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)");
  ASSERT_TRUE(is<SyscallDenied>(verdict)) << text_of(verdict);
  EXPECT_EQ(std::get<SyscallDenied>(verdict.outcome).name, "ptrace");
}

TEST_P(PythonRunTest, NothingPassesFromOneRunToTheNext) {
  const char* kMark = "import os\nfor d in ('/tmp', '/dev/shm', '.'):\n"
                      "    p = os.path.join(d, 'mark')\n    print(os.path.exists(p))\n    open(p, 'w').close()\n";
  EXPECT_EQ(run(kMark).standard_output.bytes, "False\nFalse\nFalse\n");
  EXPECT_EQ(run(kMark).standard_output.bytes, "False\nFalse\nFalse\n");
}

TEST_P(PythonRunTest, ChildrenThatOutliveTheProgramAreGone) {
  const Verdict verdict = run("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\nprint('done')",
                              {.cpu = 10s, .wall = 60s});
  EXPECT_TRUE(verdict.ok()) << text_of(verdict);
  EXPECT_LT(verdict.usage.wall, 30s);
}

TEST(SandboxRunTest, CIsCompiledOnceAndRun) {
  const Job program = c("#include <stdio.h>\nint main(void) { puts(\"hi\"); return 3; }");
  const Verdict verdict = shared_sandbox().run(program);
  ASSERT_TRUE(is<ExitNonzero>(verdict)) << text_of(verdict);
  EXPECT_EQ(std::get<ExitNonzero>(verdict.outcome).code, 3);
  EXPECT_EQ(verdict.standard_output.bytes, "hi\n");
  EXPECT_TRUE(shared_sandbox().run(program).compile_cached);
}

TEST(SandboxRunTest, CompilerMessagesComeBack) {
  const Verdict verdict = shared_sandbox().run(c("int main(void) { return x; }"));
  ASSERT_TRUE(is<CompileError>(verdict));
  EXPECT_NE(verdict.standard_error.bytes.find("main.c:1:25"), std::string::npos) << text_of(verdict);
}

TEST(SandboxRunTest, CompilerCannotIncludeFilesOfTheHost) {
  const Verdict verdict = shared_sandbox().run(c("#include \"/etc/shadow\"\nint main(void) { return 0; }"));
  EXPECT_TRUE(is<CompileError>(verdict)) << text_of(verdict);
  EXPECT_NE(verdict.standard_error.bytes.find("No such file"), std::string::npos);
}

struct Hello {
  Language language;
  const char* source;
};

class LanguageTest : public testing::TestWithParam<Hello> {};

TEST_P(LanguageTest, SaysHello) {
  if (shared_sandbox().toolchains().find(GetParam().language) == nullptr) {
    GTEST_SKIP() << "no toolchain for " << name(GetParam().language);
  }
  Job program = job(GetParam().language, GetParam().source);
  program.limits.cpu = 60s;
  program.limits.wall = 120s;
  program.compile_limits.cpu = 60s;
  program.compile_limits.wall = 240s;
  for (int round = 0; round < 2; ++round) {  // a warm worker serves the second one, where there is one
    const Verdict verdict = shared_sandbox().run(program);
    EXPECT_TRUE(verdict.ok()) << text_of(verdict);
    EXPECT_EQ(verdict.standard_output.bytes, "hello\n");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Languages, LanguageTest,
    testing::Values(
        Hello{Language::c, "#include <stdio.h>\nint main(void) { puts(\"hello\"); }"},
        Hello{Language::cpp, "#include <iostream>\nint main() { std::cout << \"hello\" << std::endl; }"},
        Hello{Language::javascript, "console.log('hello')"}, Hello{Language::bash, "cat <(echo hello)"},
        Hello{Language::java, "public class Main { public static void main(String[] a) { System.out.println(\"hello\"); } }"},
        Hello{Language::go, "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }"},
        Hello{Language::rust, "fn main() { println!(\"hello\"); }"}),
    [](const auto& chosen) { return std::string(name(chosen.param.language)); });

TEST(SandboxRunTest, WarmNodeWorkerGetsItsJobWhole) {
  Job program = job(Language::javascript,
                    "const h = require('./helper'); console.log(h.x, process.argv.slice(2).join(), process.env.WORD)");
  program.files = {{"helper.js", "exports.x = 'é\"\\\\';", false}};
  program.arguments = {"a\"b", "c\\d"};
  program.environment = {{"WORD", "w\n"}};
  const Verdict first = shared_sandbox().run(program);
  const Verdict second = shared_sandbox().run(program);
  EXPECT_EQ(first.standard_output.bytes, "é\"\\ a\"b,c\\d w\n\n") << text_of(first);
  EXPECT_EQ(second.standard_output.bytes, first.standard_output.bytes) << text_of(second);
  EXPECT_TRUE(second.warm);
}

TEST(SandboxRunTest, ArtefactsAreCollectedAndLinksRefused) {
  Job program = python(
      "import os\nopen('good', 'w').write('x')\nos.symlink('/etc/passwd', 'link')\nos.mkfifo('pipe')\n"
      "os.mkdir('dir')\nos.symlink('dir', 'through')\nopen('dir/f', 'w').close()\nos.link('good', 'twin')\nopen('one', 'w')");
  program.collect = {"one", "good", "link", "pipe", "dir", "through/f", "absent"};
  const Verdict verdict = shared_sandbox().run(program);
  ASSERT_TRUE(verdict.ok()) << text_of(verdict);
  ASSERT_EQ(verdict.artefacts.size(), 7U);
  EXPECT_EQ(verdict.artefacts[0].refused, "");
  for (std::size_t i = 1; i < 7; ++i) EXPECT_NE(verdict.artefacts[i].refused, "") << verdict.artefacts[i].path;
}

TEST(SandboxRunTest, UnsafeNamesAreRefusedBeforeAnythingIsWritten) {
  for (const char* path : {"../x", "a/../../x", "/abs", "", "-rf", "a//b", "a/b/c/d/e", "x y", "main.py"}) {
    Job program = python("print(1)");
    program.files = {{path, "", false}};
    EXPECT_TRUE(is<SetupError>(shared_sandbox().run(program))) << path;
  }
}

TEST(SandboxRunTest, DiscardKeepsTheProgramAlive) {
  Job program = python("for i in range(2000): print('x' * 1000)\nimport sys; sys.exit(4)");
  program.limits.output_bytes = 1000;
  program.overflow = Overflow::discard;
  const Verdict verdict = shared_sandbox().run(program);
  ASSERT_TRUE(is<ExitNonzero>(verdict)) << text_of(verdict);
  EXPECT_TRUE(verdict.standard_output.truncated);
  EXPECT_EQ(verdict.standard_output.bytes.size(), 1000U);
}

TEST(SandboxRunTest, LargeInputAndSourceArrive) {
  Job program = python("import sys\nprint(len(sys.stdin.read()))\n#" + std::string(300'000, 'x'));
  program.input = std::string(3'000'000, 'y');
  const Verdict verdict = shared_sandbox().run(program);
  EXPECT_EQ(verdict.standard_output.bytes, "3000000\n") << text_of(verdict);
}

TEST(SandboxRunTest, UnreadInputDoesNotBlock) {
  Job program = python("print('done')");
  program.input = std::string(3'000'000, 'y');
  EXPECT_TRUE(shared_sandbox().run(program).ok());
}

TEST(SandboxRunTest, OutputBytesAreExact) {
  const Verdict verdict = shared_sandbox().run(python("import sys; sys.stdout.buffer.write(bytes(range(256)))"));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(verdict.standard_output.bytes, all);
}

TEST(SandboxRunTest, StopEndsARun) {
  std::stop_source stop;
  std::jthread stopper([&stop] { stop.request_stop(); });
  const Verdict verdict = shared_sandbox().run(python("import time; time.sleep(1000)"), stop.get_token());
  EXPECT_TRUE(is<Cancelled>(verdict)) << text_of(verdict);
}

/// Later runs find workers that were started ahead: nothing about a run may depend on that.
TEST(SandboxRunTest, PythonStartedAheadGetsItsJobWhole) {
  Job program = python("import sys, os, helper.deep as h\nprint(h.x, sys.argv[1:], os.environ['WORD'], input(), __file__)\n"
                       "print(sorted(os.listdir('.')))\n"
                       "for fd in range(3, 64):\n    try:\n        os.fstat(fd)\n        print('open', fd)\n    except OSError: pass");
  program.files = {{"helper/deep.py", "x = 'é'", false}, {"large", std::string(300'000, 'x'), false}};
  program.arguments = {"a b"};
  program.environment = {{"WORD", "w"}};
  program.input = "line\n";
  program.collect = {"large"};
  for (int round = 0; round < 12; ++round) {
    const Verdict verdict = shared_sandbox().run(program);
    EXPECT_TRUE(verdict.warm);
    ASSERT_EQ(verdict.standard_output.bytes,
              "é ['a b'] w line /sandbox/box/main.py\n['helper', 'large', 'main.py']\n") << text_of(verdict);
    ASSERT_EQ(verdict.artefacts.at(0).content.size(), 300'000U);
  }
}

TEST(SandboxRunTest, PythonStartedAheadIsHeldToItsLimits) {
  Job loop = python("while True: pass");
  loop.limits.cpu = std::chrono::milliseconds(200);
  Job hungry = python("x = bytearray(1 << 30)");
  hungry.limits.memory_bytes = 64U << 20;
  for (int round = 0; round < 4; ++round) {
    const Verdict looped = shared_sandbox().run(loop);
    EXPECT_TRUE(is<CpuLimit>(looped)) << text_of(looped);
  }
  for (int round = 0; round < 4; ++round) {
    const Verdict filled = shared_sandbox().run(hungry);
    EXPECT_TRUE(is<MemoryLimit>(filled)) << text_of(filled);
  }
}

TEST(SandboxRunTest, NoCapabilityCanBeHadHoweverAProgramIsStarted) {
  Job program = python("import ctypes\nc = ctypes.CDLL(None)\nbounding = [c.prctl(23, i, 0, 0, 0) for i in range(64)]\n"
                       "header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[7] * 6)\n"
                       "print(bounding[0], bounding.count(1), c.capget(header, sets), list(sets))");
  for (const Start start : {Start::cold, Start::warm, Start::warm}) {
    program.start = start;
    const Verdict verdict = shared_sandbox().run(program);
    EXPECT_EQ(verdict.standard_output.bytes, "0 0 0 [0, 0, 0, 0, 0, 0]\n") << text_of(verdict);
  }
}

std::set<std::string> children_of_this_process() {
  std::set<std::string> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) all.insert(pid);
  }
  return all;
}

TEST(SandboxRunTest, NothingOutlivesASandboxThatEndsAfterItsFirstRun) {
  // What a broker left behind would be ours.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  const std::set<std::string> before = children_of_this_process();
  for (int round = 0; round < 5; ++round) {
    auto early = Sandbox::start();
    ASSERT_TRUE(early.has_value()) << early.error().message();
    const Verdict verdict = early->run(python("print(1)"));
    EXPECT_TRUE(verdict.ok() && verdict.warm) << text_of(verdict);
    { const Sandbox ended = std::move(*early); }
    EXPECT_EQ(children_of_this_process(), before);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

TEST(SandboxRunTest, JudgeTalksToTheProgramOnItsOwnDescriptors) {
  for (int round = 0; round < 6; ++round) {
    int questions[2], answers[2];
    ASSERT_EQ(::pipe(questions), 0);
    ASSERT_EQ(::pipe(answers), 0);
    Job program = python("import os\nos.write(4, os.read(3, 100).upper())\nprint('out')");
    program.judge = JudgeChannel{questions[0], answers[1]};
    ASSERT_EQ(::write(questions[1], "ping", 4), 4);
    const Verdict verdict = shared_sandbox().run(program);
    EXPECT_EQ(verdict.standard_output.bytes, "out\n") << text_of(verdict);
    char answer[4] = {};
    EXPECT_EQ(::read(answers[0], answer, 4), 4);
    EXPECT_EQ(std::string(answer, 4), "PING");
    for (const int fd : {questions[0], questions[1], answers[0], answers[1]}) ::close(fd);
  }
}

TEST(SandboxRunTest, ManyThreadsRunAtOnce) {
  std::vector<std::jthread> threads;
  std::vector<std::string> outputs(8);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([i, &outputs] {
      for (int round = 0; round < 3; ++round) {
        const Verdict verdict = shared_sandbox().run(python("print(" + std::to_string(i) + ")"));
        outputs[i] += verdict.standard_output.bytes;
      }
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string line = std::to_string(i) + "\n";
    EXPECT_EQ(outputs[i], line + line + line);
  }
}

TEST(SandboxRunTest, EveryVerdictSaysWhatProtectsAndWhatIsMissing) {
  const Verdict verdict = shared_sandbox().run(python("pass"));
  for (const Protection needed : {Protection::seccomp, Protection::pid_namespace, Protection::read_only_root}) {
    EXPECT_TRUE(verdict.protections.has(needed)) << name(needed);
  }
}

}  // namespace
}  // namespace fixpoint::sandbox
