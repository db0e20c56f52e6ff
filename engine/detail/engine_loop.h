#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/detail/inbox.h"
#include "engine/detail/speculation.h"
#include "engine/detail/step_batch.h"
#include "engine/detokenizer.h"
#include "engine/engine.h"
#include "engine/kv_cache.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"

namespace fixpoint::engine::detail {

/// What the engine's thread owns and does. `run` is that thread; only `stats` and the public members are for others.
class EngineLoop {
 public:
  EngineLoop(StepModel& model, const Tokenizer& tokenizer, const EngineOptions& options, int num_blocks, std::shared_ptr<Inbox> inbox);

  void run(const std::stop_token& stop);
  [[nodiscard]] EngineStats stats() const;

  /// Requests submitted and not ended; `submit` raises it, the loop lowers it.
  std::atomic<int> requests_in_flight{0};

 private:
  struct ActiveRequest;

  /// One sample: its sequence for the scheduler, its text for the caller.
  struct Sample : Sequence {
    Sample(SequenceSpec spec, ActiveRequest& owner, int sample_index, Detokenizer detokenizer)
        : Sequence(std::move(spec)), request(owner), index(sample_index), text(std::move(detokenizer)) {}

    ActiveRequest& request;
    int index;
    Detokenizer text;
    TokenHistory history;
    SampleDrafts drafting;
    std::optional<Clock::time_point> first_step, first_token;
    bool ended = false;
  };

  struct ActiveRequest {
    NewRequest submitted;
    std::vector<TokenId> stop_tokens;  // the request's and, unless ignored, the tokenizer's
    std::vector<std::unique_ptr<Sample>> samples;
    int unfinished = 0;
  };

  struct Outgoing {
    std::shared_ptr<Delivery> delivery;
    std::uint64_t request = 0;
    Output output;
    bool last = false;  // of the request
  };

  /// What a step gave a sample: tokens that are appended to it already, and its end where they end it.
  struct News {
    Sample* sample = nullptr;
    Output output;
    std::optional<std::string> error;  ///< after those tokens nothing could be chosen
  };

  /// One of a step's rows: its token where it was chosen for itself, by the model or side by side, and its logits unless by the model.
  struct RowResult {
    std::optional<std::int32_t> chosen;
    std::span<const float> logits;
  };

  void take_messages(const std::stop_token& stop);
  void handle(NewRequest message);
  void start(NewRequest message);
  void not_started(std::uint64_t id, int n, const std::shared_ptr<Delivery>& delivery, const std::string& error);
  void handle(const CancelRequest& message);
  void handle(const NewPin& message);
  void handle(const EndPin& message);
  void handle(const EndSession& message);

  void step();
  void note_started(const StepPlan& plan);
  void add_drafts(const StepPlan& plan);
  void add_choices(const StepPlan& plan);
  void choose(const StepPlan& plan, const StepOutput& output);
  void split_rows(const StepPlan& plan, const StepOutput& output);
  void choose_together();
  void choose_rows(const Chunk& chunk, std::span<RowResult> rows, Sampler& sampler) const;
  [[nodiscard]] News choose(Sample& sample, std::span<const RowResult> rows);
  [[nodiscard]] tl::expected<SampledToken, std::string> choose(const Sample& sample, const RowResult& row);
  [[nodiscard]] SamplePoint sample_point(const Sample& sample, std::size_t ahead = 0) const;
  void accept(Sample& sample, SampledToken chosen, Output& output);
  void tell(News& news);
  [[nodiscard]] std::optional<Finish> finish_after(Sample& sample, TokenId token, std::string& text);
  void finish(Sample& sample, Output output);
  void report(Sample& sample, Output output);
  [[nodiscard]] static Output ended_output(Sample& sample, FinishReason reason, const std::string& error);
  void fail(Sample& sample, FinishReason reason, const std::string& error);
  void hand_out();
  void fail_running(const std::string& error);
  void abandon_all(const std::string& error);
  void cancel_all();
  void start_over();
  void record_step(const StepPlan& plan, StepCost cost, std::size_t chunks);
  void publish_stats();

  StepModel& model_;
  const Tokenizer& tokenizer_;
  const EngineOptions options_;
  const int num_blocks_;
  const std::shared_ptr<Inbox> inbox_;
  std::vector<TokenId> end_tokens_;  // the tokenizer's own stop tokens

  std::optional<KvCache> cache_;        // before everything that holds its blocks
  std::optional<Scheduler> scheduler_;
  std::vector<Sampler> samplers_;      // one for each of the model's threads; the first is the loop's own
  StepBatch batch_;
  Speculator speculator_;
  std::vector<SampleDrafts*> drafts_;  // [chunks of the step]
  std::vector<kernels::RowChoice> choices_;  // of the step's rows, those that the model may make
  std::vector<RowResult> rows_;        // [rows of the step]
  std::vector<std::pair<const Chunk*, std::span<RowResult>>> sampled_;  // the step's chunks that sample, and their rows
  std::vector<News> news_;
  std::vector<Outgoing> outgoing_;     // handed out when the step is over and its stats are published
  std::chrono::nanoseconds handing_out_{0};  // time it took, counted with the next step
  std::unordered_map<std::uint64_t, std::unique_ptr<ActiveRequest>> requests_;
  SequenceId next_sequence_ = 1;
  kernels::OpCounters work_before_;

  EngineStats counts_;                 // the loop's own
  SchedulerCounters counted_before_;   // of schedulers before the present one
  std::uint64_t evicted_before_ = 0;
  mutable std::mutex stats_mutex_;
  EngineStats published_;
};

}  // namespace fixpoint::engine::detail
