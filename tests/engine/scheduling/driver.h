#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/detail/step_batch.h"
#include "engine/kv_cache.h"
#include "engine/scheduler.h"
#include "tests/engine/serving/fake_model.h"

namespace fixpoint::engine::testing {

/// The engine's loop without threads and text: plans a step, runs the fake model on it, drafts included, appends the greedy
/// tokens, checks every invariant, and takes out what is done.
class Driver {
 public:
  struct Options {
    int num_blocks = 64;
    int block_size = 4;
    int max_pinned_blocks = 0;
    SchedulerOptions scheduler = {.max_running = 8, .max_step_tokens = 16, .ageing_steps = 64};
  };
  struct Result {
    std::vector<TokenId> output;
    int cached_tokens = 0;
    int preemptions = 0;
    int finished_in_step = 0;
    int first_token_in_step = 0;
    bool stuck = false;
  };

  explicit Driver(const Options& options);
  ~Driver();

  SequenceId add(std::vector<TokenId> prompt, int max_tokens, int priority = 0, const std::string& tenant = {});
  void cancel(SequenceId id);
  /// False when there was nothing to do.
  bool step();
  /// Steps until nothing is left; gives up (and fails the test) after `limit` steps.
  void run(int limit = 100000);

  [[nodiscard]] bool alive(SequenceId id) const { return sequences_.contains(id); }
  [[nodiscard]] const Sequence& sequence(SequenceId id) const { return *sequences_.at(id); }
  [[nodiscard]] const Result& result(SequenceId id) const { return results_.at(id); }
  /// What the model says follows the prompt, with nothing else in the world.
  [[nodiscard]] std::vector<TokenId> expected(const std::vector<TokenId>& prompt, int n) const {
    return model.continue_greedily(prompt, n);
  }
  [[nodiscard]] int steps() const { return steps_; }

  FakeModel model;
  KvCache cache;
  Scheduler scheduler;
  int computed_tokens = 0;                           ///< rows of all forwards
  std::vector<int> step_tokens;                      ///< rows of each
  int drafted_tokens = 0;                            ///< draft tokens among them …
  int accepted_tokens = 0;                           ///< … and those that were right
  std::function<void(const StepPlan&)> on_plan;
  std::function<std::vector<TokenId>(const Sequence&)> draft;  ///< asked for every sequence that decodes

 private:
  void finish(Sequence& sequence, bool stuck);
  void add_drafts(const StepPlan& plan);
  void append(Sequence& sequence, int drafts, std::span<const float> logits);

  std::map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::map<SequenceId, Result> results_;
  detail::StepBatch batch_;
  SequenceId next_id_ = 1;
  int steps_ = 0;
};

/// `n` tokens below 64 that depend on `seed`.
[[nodiscard]] std::vector<TokenId> random_tokens(int n, std::uint64_t seed);
[[nodiscard]] std::vector<TokenId> joined(std::vector<TokenId> a, std::span<const TokenId> b);

}  // namespace fixpoint::engine::testing
