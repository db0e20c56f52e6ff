// How long does a launch take? Interleaved in one process: a bare posix_spawn of /bin/true, the sandbox with every layer on,
// bubblewrap, and (given by path) nsjail; then Python fresh and warm, throughput with two threads, and compute.
//   bench_sandbox_launch [rounds] [nsjail]

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/sandbox.h"

namespace {

using namespace fixpoint::sandbox;
using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

void spawn(const std::vector<const char*>& words) {
  std::vector<char*> arguments;
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  arguments.push_back(nullptr);
  char path[] = "PATH=/usr/bin:/bin";  // gcc looks for its assembler there
  char* environment[] = {path, nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  if (posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environment) != 0) std::abort();
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) {
    std::fprintf(stderr, "%s ended with %d\n", words[0], status);
    std::exit(1);
  }
}

struct Subject {
  std::string name;
  std::function<void()> launch;
  std::vector<double> times = {};

  [[nodiscard]] double quantile(double q) {
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))];
  }
};

constexpr std::chrono::milliseconds kPause{30};

void measure(std::vector<Subject>& subjects, int rounds) {
  for (Subject& subject : subjects) subject.launch();
  for (int round = 0; round < rounds; ++round) {
    for (Subject& subject : subjects) {
      // What a subject left to be done (or does ahead) is not its neighbour's time.
      std::this_thread::sleep_for(kPause);
      const auto start = Clock::now();
      subject.launch();
      subject.times.push_back(milliseconds(Clock::now() - start));
    }
  }
  const double bare = subjects[0].quantile(0.5);
  for (Subject& subject : subjects) {
    std::printf("%-34s p10 %8.3f  p50 %8.3f  p99 %8.3f ms   %6.2f x\n", subject.name.c_str(), subject.quantile(0.1),
                subject.quantile(0.5), subject.quantile(0.99), subject.quantile(0.5) / bare);
  }
}

double per_second(const std::function<void()>& launch, std::chrono::seconds time) {
  std::atomic<int> count = 0;
  const auto start = Clock::now();
  const auto end = start + time;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 2; ++i) {
      workers.emplace_back([&] {
        while (Clock::now() < end) {
          launch();
          ++count;
        }
      });
    }
  }
  return count / (milliseconds(Clock::now() - start) / 1000);
}

void check(const Verdict& verdict) {
  if (verdict.ok()) return;
  std::fprintf(stderr, "%s %s\n", describe(verdict.outcome).c_str(), verdict.standard_error.bytes.c_str());
  std::exit(1);
}

constexpr const char* kCompute =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) {\n"
    "  unsigned long x = 88172645463325252UL, sum = 0;\n  unsigned char* memory = calloc(1, 1 << 22);\n"
    "  for (long i = 0; i < 400000000; ++i) {\n    x ^= x << 13; x ^= x >> 7; x ^= x << 17;\n"
    "    memory[x & ((1 << 22) - 1)] += (unsigned char)x; sum += x % 1000003;\n  }\n"
    "  printf(\"%lu %d\\n\", sum, memory[5]);\n  return 0;\n}\n";

/// The same program natively and in the sandbox, by turns.
void compare_compute(Sandbox& sandbox) {
  char directory[] = "/tmp/fixpoint-bench-XXXXXX";
  if (mkdtemp(directory) == nullptr) return;
  const std::string source = std::string(directory) + "/main.c", binary = std::string(directory) + "/main";
  FILE* file = std::fopen(source.c_str(), "w");
  if (file == nullptr) return;
  std::fputs(kCompute, file);
  std::fclose(file);
  spawn({"/usr/bin/gcc", "-std=gnu17", "-O2", "-pipe", "-o", binary.c_str(), source.c_str(), "-lm", "-pthread"});
  const Job job{.language = Language::c, .source = kCompute};
  std::vector<Subject> subjects{{"compute, native", [&] { spawn({binary.c_str()}); }},
                                {"compute, sandbox", [&] { check(sandbox.run(job)); }}};
  measure(subjects, 5);
  unlink(source.c_str());
  unlink(binary.c_str());
  rmdir(directory);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  auto sandbox = Sandbox::start();
  if (!sandbox) {
    std::fprintf(stderr, "%s\n", sandbox.error().message().c_str());
    return 1;
  }
  for (const Protection missing : sandbox->protections().missing) std::printf("missing: %s\n", name(missing).data());
  // What /bin/true is: a dynamically linked program that ends at once.
  const Job native{.language = Language::c, .source = "int main(void) { return 0; }"};
  Job script{.language = Language::python, .source = "print(sum(range(100)))"};
  Job cold = script;
  cold.start = Start::cold;
  const auto run = [&](const Job& job) { check(sandbox->run(job)); };
  run(native);
  run(script);

  std::vector<Subject> launches{{"posix_spawn /bin/true", [] { spawn({"/bin/true"}); }},
                                {"sandbox, native, every layer", [&] { run(native); }}};
  if (access("/usr/bin/bwrap", X_OK) == 0) {
    launches.push_back({"bubblewrap --unshare-all", [] {
                          spawn({"/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink",
                                 "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--dev", "/dev", "--proc", "/proc",
                                 "--tmpfs", "/tmp", "/usr/bin/true"});
                        }});
  }
  if (argc > 2) {
    const char* nsjail = argv[2];
    launches.push_back({"nsjail", [nsjail] {
                          spawn({nsjail, "-Mo", "-Q", "-R", "/usr", "-R", "/lib", "-R", "/lib64", "-T", "/tmp", "--", "/usr/bin/true"});
                        }});
  }
  measure(launches, rounds);
  std::vector<Subject> pythons{{"fresh python3 -c pass", [] { spawn({"/usr/bin/python3", "-c", "pass"}); }},
                               {"sandbox, warm Python", [&] { run(script); }},
                               {"sandbox, cold Python", [&] { run(cold); }}};
  measure(pythons, rounds / 3);
  std::printf("two threads, bare     %8.0f launches/s\n", per_second([] { spawn({"/bin/true"}); }, std::chrono::seconds(3)));
  std::printf("two threads, sandbox  %8.0f launches/s\n", per_second([&] { run(native); }, std::chrono::seconds(3)));
  compare_compute(*sandbox);
  return 0;
}
