#include "evals/runner.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace fixpoint::evals {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The judgements of a session's programs, by their source.
using Judged = std::map<std::string, Judgement>;

/// A verdict that a busy machine may have made.
bool is_due(Outcome outcome) { return outcome == Outcome::time_limit || outcome == Outcome::not_judged; }
bool is_due(const Attempt& attempt) { return !attempt.program.empty() && is_due(attempt.outcome); }

void set_outcome(Attempt& attempt, Outcome outcome) {
  attempt.outcome = outcome;
  attempt.passed = outcome == Outcome::passed;
}

class Run {
 public:
  Run(const Benchmark& benchmark, Source& source, Judge& judge, const RunOptions& options, const OnRecord& on_record)
      : benchmark_(benchmark), source_(source), judge_(judge), options_(options), on_record_(on_record), records_(source.candidates().size()) {
    progress_.total = records_.size();
  }

  RunResult all(std::stop_token stop) {
    take_over_done();
    line_up();
    {
      std::vector<std::jthread> workers;
      const std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(options_.workers, 1)), 1, std::max<std::size_t>(records_.size(), 1));
      for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this, stop] { work(stop); });
    }
    for (std::size_t i = 0; i < records_.size() && !halted(stop); ++i) {
      if (records_[i] && records_[i]->repeat_due) repeat(i, stop);
    }
    return result();
  }

 private:
  [[nodiscard]] bool halted(const std::stop_token& stop) const { return stop.stop_requested() || failed_; }

  void take_over_done() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const auto found = options_.done.find(source_.candidates()[i].key);
      // What nobody could judge is tried again.
      if (found == options_.done.end() || found->second.judgement.outcome == Outcome::not_judged) continue;
      records_[i] = found->second;
      ++progress_.resumed;
      count(*records_[i]);
    }
  }

  void line_up() {
    begun_.resize(benchmark_.tasks.size());
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (!records_[i]) waiting_.push_back(i);
    }
  }

  void work(const std::stop_token& stop) {
    while (!halted(stop)) {
      const auto next = claimed();
      if (!next) return;
      auto record = judged(*next, stop);
      // A verdict that a stop request cut short is none.
      if (stop.stop_requested()) return;
      if (record) finish(*next, *std::move(record));
    }
  }

  /// The next program, rather of a task whose first one is not being judged now: what a task needs once (its canonical solution's
  /// outputs, its prompt in the model's cache) is made for that one, and a second would wait for it.
  std::optional<std::size_t> claimed() {
    const std::scoped_lock lock(claims_mutex_);
    const auto may_wait = [&](std::size_t index) { return begun_[task_of(index)] == Begun::first; };
    const auto free = std::find_if_not(waiting_.begin(), waiting_.end(), may_wait);
    const auto chosen = free != waiting_.end() ? free : waiting_.begin();
    if (chosen == waiting_.end()) return std::nullopt;
    const std::size_t index = *chosen;
    waiting_.erase(chosen);
    if (Begun& begun = begun_[task_of(index)]; begun == Begun::no) begun = Begun::first;
    return index;
  }

  [[nodiscard]] std::size_t task_of(std::size_t index) const { return source_.candidates()[index].task; }

  std::optional<Record> judged(std::size_t index, const std::stop_token& stop) {
    const Candidate& candidate = source_.candidates()[index];
    const Clock::time_point start = Clock::now();
    auto answer = source_.answer(index, stop);
    if (!answer) {
      fail(answer.error());
      return std::nullopt;
    }
    Record record;
    record.key = candidate.key;
    record.task = benchmark_.tasks[candidate.task].id;
    record.index = candidate.task;
    record.sample = candidate.sample;
    record.labels = benchmark_.tasks[candidate.task].labels;
    record.program = answer->program.source;
    record.closed = answer->program.closed;
    record.best = answer->best;
    record.ended = answer->ended;
    record.attempts = std::move(answer->attempts);
    Judged seen;
    for (std::size_t i = 0; i < record.attempts.size() && i < answer->programs.size(); ++i) {
      if (record.attempts[i].program.empty()) continue;
      set_outcome(record.attempts[i], judge_once(seen, candidate.task, answer->programs[i], stop).outcome);
    }
    record.judgement = judge_once(seen, candidate.task, answer->program, stop);
    if (record.best) {
      const Attempt& best = record.attempts[*record.best];
      record.has_visible = best.visible_tests > 0;
      record.visible_passed = record.has_visible && best.visible_passed == best.visible_tests;
    } else if (const auto visible = judge_.judge_visible(candidate.task, answer->program, stop)) {
      record.has_visible = true;
      record.visible_passed = visible->passed();
    }
    record.repeat_due = is_due(record.judgement.outcome) ||
                        std::any_of(record.attempts.begin(), record.attempts.end(), [](const Attempt& attempt) { return is_due(attempt); });
    record.wall_seconds = seconds_since(start);
    return record;
  }

  const Judgement& judge_once(Judged& seen, std::size_t task, const Program& program, const std::stop_token& stop) {
    const auto [found, is_new] = seen.try_emplace(program.source);
    if (is_new) found->second = judge_patiently(task, program, stop);
    return found->second;
  }

  /// A sandbox that failed is asked once more.
  Judgement judge_patiently(std::size_t task, const Program& program, const std::stop_token& stop) {
    Judgement judgement = judge_.judge(task, program, stop);
    if (judgement.outcome == Outcome::not_judged && !stop.stop_requested()) judgement = judge_.judge(task, program, stop);
    return judgement;
  }

  void repeat(std::size_t index, const std::stop_token& stop) {
    Record record = *records_[index];
    const Clock::time_point start = Clock::now();
    const bool passed_before = record.judgement.passed();
    Judged seen;
    if (is_due(record.judgement.outcome)) record.judgement = judge_once(seen, record.index, {record.program, record.closed}, stop);
    for (Attempt& attempt : record.attempts) {
      if (!is_due(attempt)) continue;
      const Program program = assemble_answer(benchmark_.tasks[record.index], attempt.program);
      set_outcome(attempt, judge_once(seen, record.index, program, stop).outcome);
    }
    if (stop.stop_requested()) return;
    record.repeat_due = false;
    record.repeated = true;
    record.wall_seconds += seconds_since(start);
    const std::scoped_lock lock(mutex_);
    --progress_.to_repeat;
    if (record.judgement.passed() && !passed_before) ++progress_.passed;
    records_[index] = std::move(record);
    progress_.seconds = seconds_since(start_);
    on_record_(*records_[index], progress_);
  }

  void finish(std::size_t index, Record record) {
    {
      const std::scoped_lock lock(claims_mutex_);
      begun_[task_of(index)] = Begun::whole;
    }
    const std::scoped_lock lock(mutex_);
    count(record);
    records_[index] = std::move(record);
    progress_.seconds = seconds_since(start_);
    on_record_(*records_[index], progress_);
  }

  void count(const Record& record) {
    ++progress_.done;
    if (record.repeat_due) ++progress_.to_repeat;
    if (record.judgement.passed()) ++progress_.passed;
    for (const Attempt& attempt : record.attempts) {
      progress_.prompt_tokens += attempt.prompt_tokens;
      progress_.cached_tokens += attempt.cached_tokens;
      progress_.completion_tokens += attempt.completion_tokens;
    }
  }

  void fail(const std::string& error) {
    const std::scoped_lock lock(mutex_);
    if (error_.empty()) error_ = error;
    failed_ = true;
  }

  RunResult result() {
    RunResult out;
    out.complete = true;
    for (std::optional<Record>& record : records_) {
      if (!record || record->repeat_due) out.complete = false;
      if (record) out.records.push_back(*std::move(record));
    }
    out.error = error_;
    progress_.seconds = seconds_since(start_);
    out.progress = progress_;
    return out;
  }

  const Benchmark& benchmark_;
  Source& source_;
  Judge& judge_;
  const RunOptions& options_;
  const OnRecord& on_record_;
  const Clock::time_point start_ = Clock::now();
  std::vector<std::optional<Record>> records_;
  enum class Begun : std::uint8_t { no, first, whole };  // no program of a task; its first one; that one, or another, is judged
  std::mutex claims_mutex_;                             // guards the next two
  std::list<std::size_t> waiting_;                      // places of programs that nobody has begun, in order
  std::vector<Begun> begun_;                            // of each task
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards progress_, error_ and calls of on_record_
  Progress progress_;
  std::string error_;
};

}  // namespace

RunResult run(const Benchmark& benchmark, Source& source, Judge& judge, const RunOptions& options, const OnRecord& on_record, std::stop_token stop) {
  return Run(benchmark, source, judge, options, on_record).all(stop);
}

}  // namespace fixpoint::evals
