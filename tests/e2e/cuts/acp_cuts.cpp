// Sockets cut and processes killed (-9), clients and server, at random points:  acp_cuts FIXPOINT [CUTS [SEED]]
// CUTS and SEED may come from FIXPOINT_CUTS and FIXPOINT_CUTS_SEED. Ends with 0 where no update was lost and none came
// twice, each prompt had one end, and no session is gone.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/e2e/cuts/client.h"
#include "tests/e2e/cuts/process.h"
#include "tests/e2e/cuts/story.h"
#include "tests/e2e/cuts/wire.h"

namespace fixpoint::cuts {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kClients = 4;

/// Answers for as long as a server lives: a third of them wrong, after 0 to 40 ms.
void write_script(const fs::path& file, std::mt19937& random) {
  Json answers = Json::array();
  for (int i = 0; i < 20'000; ++i) {
    const bool right = random() % 3 != 0;
    const std::string program = right ? "2 * x" : "x + " + std::to_string(1 + random() % 1'000);
    answers.push_back({{"text", "Answer " + std::to_string(i) + ".\n```python\ndef double(x):\n    return " + program + "\n```"}, {"delay_ms", random() % 40}});
  }
  std::ofstream(file) << answers;
}

class Trial {
 public:
  Trial(std::string self, std::string program, int cuts, unsigned seed)
      : self_(std::move(self)), program_(std::move(program)), wanted_(cuts), seed_(seed), random_(seed) {
    std::string name = (fs::temp_directory_path() / "fixpoint-cuts-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    write_script(folder_ / "answers.json", random_);
  }
  ~Trial() {
    std::error_code ignored;
    if (passed_) fs::remove_all(folder_, ignored);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void run() {
    const auto begin = Clock::now();
    auto said = begin;
    start_server();
    for (int i = 0; i < kClients; ++i) clients_.push_back(start_client(i));
    while (cuts() < wanted_) {
      std::this_thread::sleep_for(milliseconds(random_() % 250));
      for (Process& client : clients_) {
        if (const int code = client.exit_code(milliseconds(0)); code != Process::kRunning) throw std::runtime_error("a client ended with " + std::to_string(code));
      }
      if (random_() % 6 == 0) {
        ++server_kills_;
        server_.kill();
        start_server();
      } else {
        ++client_kills_;
        const auto i = random_() % kClients;
        clients_[i].kill();
        clients_[i] = start_client(static_cast<int>(i));
      }
      collect();
      if (Clock::now() - said > std::chrono::seconds(20)) {
        said = Clock::now();
        report(begin);
      }
    }
    std::ofstream(folder_ / "calm") << "\n";
    for (Process& client : clients_) {
      if (const int code = client.exit_code(std::chrono::minutes(2)); code != 0) throw std::runtime_error("a client ended with " + std::to_string(code));
    }
    collect();
    const std::set<std::string> there = list_sessions(port_);
    for (const std::string& session : sessions_) {
      if (!there.contains(session)) throw std::runtime_error("session " + session + " is gone");
    }
    report(begin);
    passed_ = true;
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  [[nodiscard]] int cuts() const { return server_kills_ + client_kills_ + socket_cuts_; }

  void start_server() {
    server_ = Process({program_, "serve", "--listen", "127.0.0.1:" + std::to_string(port_), "--script", folder_ / "answers.json", "--journal",
                       folder_ / "journal.db", "--log", folder_ / "log"},
                      true);
    const std::string address = server_.wait_for("listening on http://127.0.0.1:");
    port_ = static_cast<std::uint16_t>(std::stoi(address));
  }
  Process start_client(int i) {
    return Process({self_, "--client", folder_, "client" + std::to_string(i), std::to_string(port_), std::to_string(random_())});
  }
  /// Counts what finished conversations leave.
  void collect() {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".done" || counted_.contains(entry.path())) continue;
      counted_.insert(entry.path());
      std::ifstream in(entry.path());
      std::string line, last;
      while (std::getline(in, line)) last = line;
      const Json end = Json::parse(last);
      socket_cuts_ += end["cuts"].get<int>();
      updates_ += end["updates"].get<std::int64_t>();
      prompts_ += end["prompts"].get<int>();
      sessions_.insert(end["session"]);
      std::ofstream(entry.path(), std::ios::trunc);  // its name stays taken
    }
  }
  void report(Clock::time_point begin) const {
    std::printf("%d cuts (%d sockets, %d clients killed, %d servers killed), %zu sessions, %d prompts, %lld updates: each once; %.0f s, seed %u\n", cuts(),
                socket_cuts_, client_kills_, server_kills_, sessions_.size(), prompts_, static_cast<long long>(updates_),
                std::chrono::duration<double>(Clock::now() - begin).count(), seed_);
    std::fflush(stdout);
  }

  const std::string self_, program_;
  const int wanted_;
  const unsigned seed_;
  std::mt19937 random_;
  fs::path folder_;
  std::uint16_t port_ = 0;
  Process server_;
  std::vector<Process> clients_;
  int server_kills_ = 0, client_kills_ = 0, socket_cuts_ = 0, prompts_ = 0;
  std::int64_t updates_ = 0;
  std::set<std::string> sessions_;
  std::set<fs::path> counted_;
  bool passed_ = false;
};

unsigned number(int argc, char** argv, int at, const char* variable, unsigned otherwise) {
  const char* text = argc > at ? argv[at] : std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::stoul(text));
}

}  // namespace
}  // namespace fixpoint::cuts

int main(int argc, char** argv) {
  using namespace fixpoint::cuts;
  ::signal(SIGPIPE, SIG_IGN);
  if (argc == 6 && std::string(argv[1]) == "--client") {
    return run_client(argv[2], argv[3], static_cast<std::uint16_t>(std::stoi(argv[4])), static_cast<unsigned>(std::stoul(argv[5])));
  }
  if (argc < 2) {
    std::fprintf(stderr, "acp_cuts FIXPOINT [CUTS [SEED]]\n");
    return 2;
  }
  Trial trial(argv[0], argv[1], static_cast<int>(number(argc, argv, 2, "FIXPOINT_CUTS", 100)), number(argc, argv, 3, "FIXPOINT_CUTS_SEED", std::random_device{}()));
  try {
    trial.run();
    return 0;
  } catch (const Broken&) {
    std::fprintf(stderr, "acp_cuts: the server is not there; see %s\n", trial.folder().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "acp_cuts: %s; see %s\n", error.what(), trial.folder().c_str());
  }
  return 1;
}
