// Figures of docs/performance.md, against a real server, engine and sandbox on loopback. One JSON object on stdout.
//   bench_sessions load FIXPOINT MODEL|script [SESSIONS [WORKING [SECONDS]]]
//   bench_sessions cancel FIXPOINT MODEL [BUSY [CANCELS [ALL_AT_ONCE]]]
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "tests/e2e/load/editor.h"
#include "tests/e2e/load/service.h"

namespace fixpoint::load {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

/// No program passes: the rounds go on, most of the time in the model.
const char* const kModelTask = "Write `double(x)`: twice the number.\n\n# Tests\n\nassert double(2) == 'four'\n";
/// The sandbox waits.
const char* const kSandboxTask = "Write `double(x)`: twice the number.\n\n# Tests\n\nimport time\ntime.sleep(60)\nassert double(2) == 4\n";

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

Json quantiles(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) { return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))]; };
  return {{"n", values.size()}, {"p50_ms", at(0.5)}, {"p99_ms", at(0.99)}, {"max_ms", values.back()}};
}

/// The editors and the one thread that they live on.
class Desk {
 public:
  explicit Desk(const Service& service) : service_(service) {}

  void open(int count) {
    for (int i = 0; i < count; ++i) {
      editors.push_back(std::make_unique<Editor>(context_, service_.port()));
      wait(editors.back()->open());
    }
  }
  void open_slow(const std::string& session) {
    slow = std::make_unique<Editor>(context_, service_.port());
    wait(slow->open_and_stop_reading(session));
  }
  void run_for(milliseconds time) {
    context_.restart();
    context_.run_for(time);
  }
  /// False: it took longer than `limit`.
  template <class Done>
  bool run_until(Done done, milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    while (!done()) {
      if (Clock::now() >= deadline) return false;
      context_.restart();
      context_.run_one_for(milliseconds(1));
    }
    return true;
  }

 private:
  void wait(asio::awaitable<void> what) {
    bool done = false;
    std::exception_ptr failed;
    asio::co_spawn(context_, std::move(what), [&](const std::exception_ptr& error) {
      failed = error;
      done = true;
    });
    if (!run_until([&] { return done; }, milliseconds(20'000))) throw std::runtime_error("a connection takes too long");
    if (failed) std::rethrow_exception(failed);
  }
  const Service& service_;
  asio::io_context context_;

 public:
  std::vector<std::unique_ptr<Editor>> editors;
  std::unique_ptr<Editor> slow;
};

Json load(const std::string& program, const std::string& model, int sessions, int working, int seconds) {
  std::vector<std::string> flags{"--running-sessions", std::to_string(working), "--rounds", "10", "--max-connections", "8000", "--max-connections-per-address", "8000"};
  if (model != "script") flags.insert(flags.end(), {"--threads", "1"});
  Service service(program, model, flags);
  Desk desk(service);
  desk.open(1);  // what the first one costs is not an idle session's
  const std::int64_t empty = service.resident_bytes();
  const auto opening = Clock::now();
  desk.open(sessions - 1);
  const double opened = ms(Clock::now() - opening);
  const std::int64_t idle = service.resident_bytes();
  for (int i = 0; i < working; ++i) desk.editors[static_cast<std::size_t>(i)]->work(kModelTask, true);
  desk.open_slow(desk.editors[0]->session());
  desk.run_for(milliseconds(3'000));
  const std::string before = service.metrics();
  const double cpu = service.cpu_seconds();
  desk.run_for(milliseconds(seconds * 1'000));
  const std::string after = service.metrics();
  const Buckets late = buckets_of(after, "fixpoint_update_latency_seconds") - buckets_of(before, "fixpoint_update_latency_seconds");
  const auto lost = std::count_if(desk.editors.begin(), desk.editors.end(), [](const auto& it) { return it->lost(); });
  std::int64_t updates = 0;
  for (const auto& editor : desk.editors) updates += editor->updates();
  return {{"sessions", sessions},
          {"working", working},
          {"lost", lost},
          {"open_ms_each", opened / (sessions - 1)},
          {"bytes_per_idle_session", (idle - empty) / (sessions - 1)},
          {"resident_bytes", {{"empty", empty}, {"idle", idle}, {"after_work", service.resident_bytes()}}},
          {"cpu", (service.cpu_seconds() - cpu) / seconds},
          {"updates_heard", updates},
          {"latency",
           {{"n", late.counts.empty() ? 0 : late.counts.back()},
            {"p50_ms", late.quantile(0.5) * 1e3},
            {"p99_ms", late.quantile(0.99) * 1e3},
            {"part_within_2_ms", late.part_below(0.002)},
            {"part_within_10_ms", late.part_below(0.01)}}}};
}

/// Pinned blocks are kept for a session's next prompt, for a while or until somebody needs them.
bool idle(const std::string& metrics) {
  return value_of(metrics, "fixpoint_num_requests_running") == 0 && value_of(metrics, "fixpoint_num_requests_waiting") == 0 &&
         value_of(metrics, "fixpoint_kv_blocks_held") == value_of(metrics, "fixpoint_kv_blocks_pinned");
}

Json cancel(const std::string& program, const std::string& model, int busy, int cancels, int all_at_once) {
  Service service(program, model, {"--running-sessions", std::to_string(busy), "--rounds", "10"});
  Desk desk(service);
  desk.open(busy);
  const auto work = [&](std::size_t i) { desk.editors[i]->work(i % 2 == 0 ? kModelTask : kSandboxTask, true); };
  const auto start_all = [&] {
    for (std::size_t i = 0; i < desk.editors.size(); ++i) work(i);
  };
  // What stands ready after the first runs (interpreters that were prepared) stands ready after a cancel too.
  start_all();
  desk.run_for(milliseconds(3'000));
  for (const auto& editor : desk.editors) editor->cancel();
  desk.run_for(milliseconds(4'000));
  const int standing = service.processes();
  start_all();
  desk.run_for(milliseconds(3'000));
  std::vector<double> answers, all_answers, all_idle, blocks, sandboxes;
  double in_model = 0, most_processes = 0;
  std::mt19937 random(1);
  for (int i = 0; i < cancels; ++i) {
    desk.run_for(milliseconds(30 + random() % 60));
    const std::size_t which = random() % desk.editors.size();
    Editor& editor = *desk.editors[which];
    editor.cancel();
    if (!desk.run_until([&] { return !editor.busy(); }, milliseconds(20'000))) throw std::runtime_error("a cancel was not answered");
    if (editor.stop_reason() == "cancelled") answers.push_back(ms(editor.answered_at() - editor.cancelled_at()));
    work(which);
  }
  for (int i = 0; i < all_at_once; ++i) {
    desk.run_for(milliseconds(2'000));
    in_model += value_of(service.metrics(), "fixpoint_num_requests_running");
    most_processes = std::max(most_processes, static_cast<double>(service.processes() - standing));
    const auto sent = Clock::now();
    for (const auto& editor : desk.editors) editor->cancel();
    // Looking from outside takes its time, in which the editors' thread must hear what comes.
    std::atomic<double> blocks_ms = 0, sandbox_ms = 0;
    bool ended = false;
    {
      const std::jthread looks([&](const std::stop_token& stop) {
        while (!stop.stop_requested() && (blocks_ms == 0 || sandbox_ms == 0)) {
          if (blocks_ms == 0 && idle(service.metrics())) blocks_ms = ms(Clock::now() - sent);
          if (sandbox_ms == 0 && service.processes() <= standing) sandbox_ms = ms(Clock::now() - sent);
          std::this_thread::sleep_for(milliseconds(5));
        }
      });
      ended = desk.run_until(
          [&] {
            const bool quiet = std::none_of(desk.editors.begin(), desk.editors.end(), [](const auto& it) { return it->busy(); });
            return quiet && blocks_ms > 0 && sandbox_ms > 0;
          },
          milliseconds(20'000));
    }
    blocks.push_back(blocks_ms);
    sandboxes.push_back(sandbox_ms);
    if (!ended) {
      throw std::runtime_error("not idle after 20 s: " + std::to_string(service.processes()) + " processes, " + std::to_string(standing) + " at rest; " +
                               std::to_string(value_of(service.metrics(), "fixpoint_kv_blocks_held")) + " blocks held");
    }
    all_idle.push_back(ms(Clock::now() - sent));
    for (const auto& editor : desk.editors) {
      if (editor->stop_reason() == "cancelled") all_answers.push_back(ms(editor->answered_at() - editor->cancelled_at()));
    }
    start_all();
  }
  return {{"busy", busy},
          {"one_of_them_answered", quantiles(answers)},
          {"all_at_once",
           {{"answered", quantiles(all_answers)},
            {"generation_stopped_and_blocks_returned", quantiles(blocks)},
            {"sandbox_gone", quantiles(sandboxes)},
            {"idle", quantiles(all_idle)},
            {"requests_in_the_engine_before", in_model / std::max(1, all_at_once)},
            {"sandbox_processes_before_at_most", most_processes}}}};
}

int number(int argc, char** argv, int at, int otherwise) { return argc > at ? std::stoi(argv[at]) : otherwise; }

}  // namespace
}  // namespace fixpoint::load

int main(int argc, char** argv) {
  using namespace fixpoint::load;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::string what = argc > 3 ? argv[1] : "";
  try {
    if (what == "load") {
      std::printf("%s\n", load(argv[2], argv[3], number(argc, argv, 4, 1'000), number(argc, argv, 5, 64), number(argc, argv, 6, 30)).dump(1).c_str());
    } else if (what == "cancel") {
      std::printf("%s\n", cancel(argv[2], argv[3], number(argc, argv, 4, 32), number(argc, argv, 5, 300), number(argc, argv, 6, 12)).dump(1).c_str());
    } else {
      std::fprintf(stderr, "bench_sessions load|cancel FIXPOINT MODEL …\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_sessions: %s\n", error.what());
    return 1;
  }
}
