// Ordinary programs: none may be denied, and each must print what it prints elsewhere. A file for each language holds them:
//   === name
//   the program
//   --- prints
//   its output, or "#<bytes> <FNV-1a of them>" for long ones
#include "sandbox/sandbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace fixpoint::sandbox {
namespace {

constexpr std::size_t fewest_programs = 200;
constexpr const char* input = "10 20 30\n4 5\n";

struct OrdinaryProgram {
  Language language = Language::python;
  std::string name;
  std::string source;
  std::string prints;
};

std::vector<OrdinaryProgram> load(Language language) {
  std::string path = PROGRAMS_DIR;
  path.append("/").append(name(language)).append(".txt");
  std::ifstream in(path);
  std::vector<OrdinaryProgram> out;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      OrdinaryProgram& program = out.emplace_back();
      program.language = language;
      program.name = line.substr(4);
      part = &program.source;
    } else if (line == "--- prints") {
      part = &out.back().prints;
    } else if (part != nullptr) {
      *part += line + "\n";
    }
  }
  return out;
}

std::vector<OrdinaryProgram> load_all() {
  std::vector<OrdinaryProgram> out;
  for (const Language language : kLanguages) {
    auto programs = load(language);
    std::move(programs.begin(), programs.end(), std::back_inserter(out));
  }
  return out;
}

std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string summary(const std::string& text) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 1099511628211ULL;
  char out[64];
  std::snprintf(out, sizeof out, "#%zu %016llx\n", text.size(), static_cast<unsigned long long>(hash));
  return out;
}

bool printed(const std::string& got, const std::string& expected) {
  return expected.starts_with('#') ? summary(got) == expected : without_last_newline(got) == without_last_newline(expected);
}

Job job_of(const OrdinaryProgram& program) {
  Job job{.language = program.language, .source = program.source, .input = input};
  job.limits = {.cpu = std::chrono::seconds(20), .wall = std::chrono::seconds(60), .memory_bytes = 512 << 20, .processes = 64};
  return job;
}

void run_all(Sandbox& sandbox, const std::vector<OrdinaryProgram>& programs) {
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  std::map<Language, int> ran, absent;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < programs.size(); at = next++) {
          const OrdinaryProgram& program = programs[at];
          const bool there = sandbox.toolchains().find(program.language) != nullptr;
          const Verdict verdict = there ? sandbox.run(job_of(program)) : Verdict{};
          const std::lock_guard lock(mutex);
          ++(there ? ran : absent)[program.language];
          if (!there) continue;
          EXPECT_TRUE(verdict.ok() && printed(verdict.standard_output.bytes, program.prints))
              << name(program.language) << ", " << program.name << ": " << describe(verdict.outcome) << "\nprinted: " << verdict.standard_output.bytes.substr(0, 500)
              << "\nexpected: " << program.prints.substr(0, 500) << "\nerrors: " << verdict.standard_error.bytes.substr(0, 1000);
        }
      });
    }
  }
  for (const auto& [language, count] : ran) std::cout << name(language) << ": " << count << " programs\n";
  for (const auto& [language, count] : absent) std::cout << "NOT RUN, no toolchain: " << name(language) << ", " << count << " programs\n";
}

TEST(OrdinaryProgramsTest, AreTwoHundredDifferentOnes) {
  const auto programs = load_all();
  EXPECT_GE(programs.size(), fewest_programs);
  std::set<std::string> sources;
  for (const auto& program : programs) {
    EXPECT_TRUE(sources.insert(program.source).second) << program.name;
    EXPECT_FALSE(program.prints.empty()) << program.name;
  }
}

TEST(OrdinaryProgramsTest, AreNeitherDeniedNorChanged) {
  auto sandbox = Sandbox::start();
  ASSERT_TRUE(sandbox) << sandbox.error().message();
  run_all(*sandbox, load_all());
}

TEST(OrdinaryProgramsTest, PythonRunsTheSameWithoutAWarmInterpreter) {
  auto sandbox = Sandbox::start({.warm = false});
  ASSERT_TRUE(sandbox) << sandbox.error().message();
  run_all(*sandbox, load(Language::python));
}

}  // namespace
}  // namespace fixpoint::sandbox
