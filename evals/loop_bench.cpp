#include "evals/loop_bench.h"

#include <algorithm>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>

namespace fixpoint::evals {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// What the sessions' threads share.
struct Shared {
  const LoopWorkload& workload;
  LoopTarget& target;
  const LoopBenchOptions& options;
  std::stop_token stop;
  Clock::time_point start;
  std::mutex mutex;
  LoopRun run;  // guarded by mutex
};

/// False: stopped.
bool pause(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

LoopQuestion question_of(const Shared& shared, const LoopSession& session, std::size_t round) {
  LoopQuestion question{.session = session.id, .prompt = {}, .tokens = session.rounds[round].tokens, .prediction = {}};
  if (shared.options.chat) {
    question.prompt = prompt_messages(shared.workload, session, round);
  } else {
    question.prompt = prompt_text(shared.workload, session, round);
  }
  if (shared.options.predict && round > 0) question.prediction = session.rounds[round - 1].attempt;
  return question;
}

void run_session(Shared& shared, std::size_t index) {
  const LoopSession& session = shared.workload.sessions[index];
  for (std::size_t round = 0; round < session.rounds.size(); ++round) {
    const LoopQuestion question = question_of(shared, session, round);
    MeasuredRound measured{.session = index, .round = round, .tokens = question.tokens, .asked = Clock::now() - shared.start, .arrivals = {}, .usage = {}};
    const auto answer = shared.target.answer(question, shared.stop);
    {
      const std::scoped_lock lock(shared.mutex);
      if (!answer) {
        shared.run.failures.push_back("session " + session.id + ", round " + std::to_string(round) + ": " + answer.error());
        return;
      }
      for (const Clock::time_point arrival : answer->arrivals) measured.arrivals.push_back(arrival - shared.start);
      measured.usage = answer->usage;
      shared.run.rounds.push_back(std::move(measured));
    }
    const auto think = std::chrono::duration<double>(session.rounds[round].think) * shared.options.think_scale;
    if (round + 1 == session.rounds.size() || think.count() <= 0) continue;
    if (!pause(std::chrono::duration_cast<std::chrono::nanoseconds>(think), shared.stop)) return;
  }
}

}  // namespace

LoopRun run_loop(const LoopWorkload& workload, LoopTarget& target, const LoopBenchOptions& options, std::stop_token stop) {
  Shared shared{.workload = workload, .target = target, .options = options, .stop = std::move(stop), .start = {}, .mutex = {}, .run = {}};
  std::latch gate(1);
  bool abandoned = false;  // written before the gate opens, read after
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 0; i < workload.sessions.size(); ++i) {
        threads.emplace_back([&shared, &gate, &abandoned, i] {
          gate.wait();
          if (abandoned) return;
          run_session(shared, i);
          shared.target.end(shared.workload.sessions[i].id);
        });
      }
    } catch (...) {  // the system gives no more threads: those that wait must end before they can be joined
      abandoned = true;
      gate.count_down();
      throw;
    }
    shared.start = Clock::now();
    gate.count_down();
  }
  shared.run.wall = Clock::now() - shared.start;
  return std::move(shared.run);
}

Quantiles quantiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {.median = median, .p99 = values[(n * 99 + 99) / 100 - 1], .most = values.back()};
}

LoopSummary summarise(const LoopRun& run) {
  LoopSummary summary{.rounds = run.rounds.size(), .wall_s = std::chrono::duration<double>(run.wall).count()};
  std::vector<double> all, first, later, tokens, gaps;
  for (const MeasuredRound& it : run.rounds) {
    const double ttft = milliseconds_of(it.arrivals.front() - it.asked);
    all.push_back(ttft);
    (it.round == 0 ? first : later).push_back(ttft);
    for (std::size_t i = 1; i < it.arrivals.size(); ++i) gaps.push_back(milliseconds_of(it.arrivals[i] - it.arrivals[i - 1]));
    if (it.usage.completion_tokens > 1) {
      tokens.push_back(milliseconds_of(it.arrivals.back() - it.arrivals.front()) / static_cast<double>(it.usage.completion_tokens - 1));
    }
    if (it.usage.completion_tokens < it.tokens) ++summary.short_answers;
    summary.prompt_tokens += it.usage.prompt_tokens;
    summary.cached_tokens += it.usage.cached_tokens;
    summary.completion_tokens += it.usage.completion_tokens;
  }
  summary.ttft_ms = quantiles_of(std::move(all));
  summary.first_round_ttft_ms = quantiles_of(std::move(first));
  summary.later_rounds_ttft_ms = quantiles_of(std::move(later));
  summary.token_ms = quantiles_of(std::move(tokens));
  summary.gap_ms = quantiles_of(std::move(gaps));
  if (summary.wall_s > 0) {
    summary.rounds_per_s = static_cast<double>(summary.rounds) / summary.wall_s;
    summary.tokens_per_s = static_cast<double>(summary.completion_tokens) / summary.wall_s;
  }
  return summary;
}

}  // namespace fixpoint::evals
