// The program itself, killed with SIGKILL while it evaluates: what a resumption reports is what an undisturbed run reports.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

namespace fixpoint::evals {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kTasks = 40;

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() : folder_(fs::path(testing::TempDir()) / ("evals_resume_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    std::ofstream data(folder_ / "data.jsonl");
    std::ofstream samples(folder_ / "samples.jsonl");
    for (int i = 0; i < kTasks; ++i) {
      const std::string id = "HumanEval/" + std::to_string(i);
      const std::string number = std::to_string(i);
      data << Json{{"task_id", id}, {"prompt", "def plus(a):\n"}, {"entry_point", "plus"}, {"canonical_solution", "    return a + " + number + "\n"},
                   {"test", "def check(candidate):\n    assert candidate(1) == " + std::to_string(i + 1) + "\n    assert candidate(0) == " + number + "\n"}}
           << "\n";
      const std::string body = i % 4 == 1 ? "    return a - 1\n" : i % 4 == 3 ? "    raise ValueError(a)\n" : "    return a + " + number + "\n";
      samples << Json{{"task_id", id}, {"completion", body}} << "\n";
    }
  }
  ~ResumeTest() override { fs::remove_all(folder_); }

  pid_t start(const std::string& out, const std::vector<std::string>& more = {}) const {
    const std::string data = folder_ / "data.jsonl";
    const std::string samples = folder_ / "samples.jsonl";
    const std::string to = folder_ / out;
    std::vector<std::string> arguments{"eval", "humaneval", "--data", data, "--samples", samples, "--out", to, "--workers", "2", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return spawn(arguments);
  }

  static pid_t spawn(const std::vector<std::string>& arguments) {
    std::vector<const char*> all{FIXPOINT_BINARY};
    for (const std::string& argument : arguments) all.push_back(argument.c_str());
    all.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      execv(FIXPOINT_BINARY, const_cast<char* const*>(all.data()));
      _exit(127);
    }
    return pid;
  }

  static int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }

  std::ptrdiff_t lines(const std::string& out) const {
    const std::string text = content_of(folder_ / out / "results.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  }

  /// Kills the process as soon as the results have `count` lines; its status.
  int kill_at(pid_t pid, const std::string& out, std::ptrdiff_t count) const {
    const int watch = inotify_init1(IN_CLOEXEC);
    inotify_add_watch(watch, (folder_ / out).c_str(), IN_MODIFY | IN_CREATE);
    while (lines(out) < count) {
      pollfd ready{watch, POLLIN, 0};
      if (poll(&ready, 1, 120'000) != 1) break;
      char events[4096];
      if (read(watch, events, sizeof events) <= 0) break;
    }
    kill(pid, SIGKILL);
    close(watch);
    return wait_for(pid);
  }

  /// The records without what may differ: times.
  std::vector<Json> records(const std::string& out) const {
    std::vector<Json> found;
    std::ifstream in(folder_ / out / "results.jsonl");
    for (std::string line; std::getline(in, line);) {
      Json record = Json::parse(line);
      if (record.contains("run")) {
        record["run"].erase("started");
      } else {
        record.erase("wall_seconds");
        record["judgement"].erase("cpu_us");
        record["judgement"].erase("wall_us");
      }
      found.push_back(std::move(record));
    }
    return found;
  }

  Json summary(const std::string& out) const {
    Json all = Json::parse(content_of(folder_ / out / "summary.json"));
    for (const char* time : {"seconds", "sandbox_seconds", "cpu_seconds", "per_task", "per_solved_task"}) all.erase(time);
    all.at("run").erase("started");
    return all;
  }

  /// What the page shows of the whole run, against what its results and its summary say.
  void expect_page_tells_the_results(const std::string& out) const {
    std::map<std::string, std::int64_t> outcomes;
    std::int64_t passed = 0;
    std::int64_t repeated = 0;
    std::set<std::string> tasks;
    for (const Json& line : records(out)) {
      if (line.contains("run")) continue;
      tasks.insert(line.at("task").get<std::string>());
      ++outcomes[line.at("judgement").at("outcome").get<std::string>()];
      passed += line.at("passed").get<bool>() ? 1 : 0;
      repeated += line.value("repeated", false) ? 1 : 0;
    }
    const std::string page = content_of(folder_ / out / "report.html");
    const auto shown = [&page](const std::string& pattern) {
      std::map<std::string, std::int64_t> found;
      const std::regex expression(pattern);
      for (std::sregex_iterator it(page.begin(), page.end(), expression), end; it != end; ++it) found[(*it)[1]] = std::stoll((*it)[2]);
      return found;
    };
    const auto fields = shown("data-field=\"([a-z_]+)\">([0-9]+)<");
    EXPECT_EQ(fields.at("tasks"), static_cast<std::int64_t>(tasks.size()));
    EXPECT_EQ(fields.at("passed"), passed);
    EXPECT_EQ(fields.at("repeated_timeouts"), repeated);
    EXPECT_EQ(shown(">([a-z_]+)</text><rect[^>]*/><text[^>]*>([0-9]+)</text>"), outcomes);
    EXPECT_EQ(shown("<span class=\"id\">(HumanEval/([0-9]+))</span>").size(), tasks.size());
    const Json all = summary(out);
    EXPECT_EQ(all.at("tasks"), static_cast<std::int64_t>(tasks.size()));
    EXPECT_EQ(all.at("passed"), passed);
    EXPECT_EQ(all.at("outcomes"), Json(outcomes));
  }

  fs::path folder_;
};

TEST_F(ResumeTest, TwoKillsChangeNothingInTheReport) {
  ASSERT_EQ(wait_for(start("whole")), 0);
  fs::create_directories(folder_ / "killed");
  for (const int life : {1, 2}) {
    const int status = kill_at(life == 1 ? start("killed") : start("killed", {"--resume"}), "killed", 10 * life);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it was over before it could be killed";
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    ASSERT_LT(lines("killed"), kTasks + 1);
  }
  ASSERT_EQ(wait_for(start("killed", {"--resume"})), 0);
  EXPECT_EQ(records("killed"), records("whole"));
  EXPECT_EQ(summary("killed"), summary("whole"));
  EXPECT_EQ(summary("whole").at("tasks"), kTasks);
  EXPECT_EQ(summary("whole").at("passed"), kTasks / 2);
  expect_page_tells_the_results("whole");
  expect_page_tells_the_results("killed");
}

TEST_F(ResumeTest, ARunIsNotOverwrittenWithoutBeingAsked) {
  fs::create_directories(folder_ / "there");
  std::ofstream(folder_ / "there" / "results.jsonl") << "something\n";
  EXPECT_NE(wait_for(start("there")), 0);
  EXPECT_EQ(content_of(folder_ / "there" / "results.jsonl"), "something\n");
}

TEST_F(ResumeTest, MergedShardsAreTheWholeRun) {
  ASSERT_EQ(wait_for(start("whole")), 0);
  ASSERT_EQ(wait_for(start("first", {"--shard", "1/2"})), 0);
  ASSERT_EQ(wait_for(start("second", {"--shard", "2/2"})), 0);
  const auto merge = [this](const std::string& a, const std::string& b, const std::string& out) {
    return wait_for(spawn({"eval", "merge", folder_ / a, folder_ / b, "--out", folder_ / out, "--quiet"}));
  };
  ASSERT_EQ(merge("second", "first", "merged"), 0);
  EXPECT_EQ(records("merged"), records("whole"));
  EXPECT_EQ(summary("merged"), summary("whole"));
  expect_page_tells_the_results("merged");
  EXPECT_NE(merge("second", "first", "first"), 0) << "results are not overwritten";
  EXPECT_NE(merge("whole", "first", "both"), 0) << "a task would count twice";
  EXPECT_FALSE(fs::exists(folder_ / "both"));
}

}  // namespace
}  // namespace fixpoint::evals
