#include "engine/detail/engine_loop.h"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

namespace fixpoint::engine::detail {
namespace {

std::vector<TokenId> end_tokens(const TokenizerSpec& spec) {
  std::vector<TokenId> tokens = spec.stop_tokens;
  for (const auto& token : {spec.eos, spec.eot}) {
    if (token && std::find(tokens.begin(), tokens.end(), *token) == tokens.end()) tokens.push_back(*token);
  }
  return tokens;
}

}  // namespace

EngineLoop::EngineLoop(StepModel& model, const Tokenizer& tokenizer, const EngineOptions& options, int num_blocks,
                       std::shared_ptr<Inbox> inbox)
    : model_(model),
      tokenizer_(tokenizer),
      options_(options),
      num_blocks_(num_blocks),
      inbox_(std::move(inbox)),
      end_tokens_(end_tokens(tokenizer.spec())),
      samplers_(static_cast<std::size_t>(std::max(model.num_threads(), 1)), Sampler(tokenizer.size())),
      speculator_(options, tokenizer),
      work_before_(model.counters()) {
  start_over();
  publish_stats();
}

/// A fresh cache and scheduler; nobody may hold blocks.
void EngineLoop::start_over() {
  if (scheduler_) {
    const SchedulerCounters& c = scheduler_->counters();
    counted_before_.preemptions += c.preemptions;
    counted_before_.watchdog_trips += c.watchdog_trips;
    counted_before_.prefix_query_tokens += c.prefix_query_tokens;
    counted_before_.prefix_hit_tokens += c.prefix_hit_tokens;
    counted_before_.blocks_copied += c.blocks_copied;
    counted_before_.prefill_tokens += c.prefill_tokens;
    evicted_before_ += cache_->prefixes().evictions();
  }
  scheduler_.reset();
  cache_.emplace(num_blocks_, options_.block_size, static_cast<int>(options_.max_pinned_fraction * num_blocks_));
  scheduler_.emplace(*cache_, SchedulerOptions{.max_running = options_.max_running,
                                               .max_step_tokens = options_.max_step_tokens,
                                               .ageing_steps = options_.ageing_steps});
}

void EngineLoop::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      take_messages(stop);
      if (scheduler_->has_work()) step();
    } catch (const std::logic_error& broken) {
      // An invariant does not hold: neither the lists nor what is cached can be trusted.
      abandon_all(broken.what());
      start_over();
    } catch (const std::exception& failure) {
      fail_running(failure.what());
    }
    publish_stats();
    hand_out();
  }
  for (Message& message : inbox_->close()) {
    if (auto* request = std::get_if<NewRequest>(&message)) handle(std::move(*request));
  }
  cancel_all();
  publish_stats();
  hand_out();
}

void EngineLoop::take_messages(const std::stop_token& stop) {
  auto messages = inbox_->take(stop, !scheduler_->has_work(), cache_->next_pin_expiry());
  for (Message& message : messages) {
    std::visit([this](auto& m) { handle(std::move(m)); }, message);
  }
  cache_->expire_pins(Clock::now());
}

void EngineLoop::handle(NewRequest message) {
  const std::uint64_t id = message.id;
  const auto delivery = message.delivery;
  const int n = message.request.n;
  try {
    start(std::move(message));
  } catch (const std::bad_alloc&) {
    not_started(id, n, delivery, "out of memory");
  } catch (const std::exception& failure) {
    not_started(id, n, delivery, failure.what());
  }
}

/// Answers a request that `start` threw for, and takes back what it had done.
void EngineLoop::not_started(std::uint64_t id, int n, const std::shared_ptr<Delivery>& delivery, const std::string& error) {
  if (const auto entered = requests_.find(id); entered != requests_.end()) {
    for (const auto& sample : entered->second->samples) scheduler_->remove(*sample, Scheduler::Computed::forget);
    requests_.erase(entered);
  }
  requests_in_flight.fetch_sub(1, std::memory_order_relaxed);
  for (int i = 0; i < n; ++i) {
    Output output{.sample = i, .text = {}, .tokens = {}, .logprobs = {}, .finish = Finish{}};
    output.finish->reason = FinishReason::error;
    output.finish->error = error;
    outgoing_.push_back({delivery, id, std::move(output), i + 1 == n});
  }
}

/// Makes the samples, drafters and all; then the scheduler hears of them. What throws fails this request alone.
void EngineLoop::start(NewRequest message) {
  auto active = std::make_unique<ActiveRequest>();
  active->submitted = std::move(message);
  const Request& request = active->submitted.request;
  active->stop_tokens = request.stop_tokens;
  if (!request.ignore_eos) active->stop_tokens.insert(active->stop_tokens.end(), end_tokens_.begin(), end_tokens_.end());
  active->unfinished = request.n;
  for (int i = 0; i < request.n; ++i) {
    SequenceSpec spec{.id = next_sequence_++,
                      .prompt = request.prompt,
                      .max_total_tokens = active->submitted.max_total_tokens,
                      .tenant = request.tenant,
                      .priority = request.priority};
    auto sample = std::make_unique<Sample>(std::move(spec), *active, i, Detokenizer(tokenizer_, request.stop_strings));
    if (uses_history(request.sampling)) sample->history.add_prompt(request.prompt);
    sample->drafting = speculator_.begin(request);
    active->samples.push_back(std::move(sample));
  }
  const std::uint64_t id = active->submitted.id;
  const ActiveRequest& entered = *requests_.emplace(id, std::move(active)).first->second;
  for (const auto& sample : entered.samples) scheduler_->add(*sample);
  ++counts_.requests_submitted;
}

void EngineLoop::handle(const CancelRequest& message) {
  const auto found = requests_.find(message.id);
  if (found == requests_.end()) return;
  ActiveRequest& request = *found->second;
  // The last one that ends takes the request with it.
  for (std::size_t i = 0, n = request.samples.size(); i < n; ++i) {
    Sample& sample = *request.samples[i];
    const bool last = !sample.ended && request.unfinished == 1;
    if (!sample.ended) fail(sample, FinishReason::cancelled, {});
    if (last) return;
  }
}

void EngineLoop::handle(const NewPin& message) { cache_->pin(message.id, message.tenant, {}, message.tokens, message.expiry); }

void EngineLoop::handle(const EndPin& message) { cache_->unpin(message.id); }

void EngineLoop::handle(const EndSession& message) { cache_->unpin(message.tenant, message.session); }

void EngineLoop::step() {
  const auto begin = Clock::now();
  const StepPlan& plan = scheduler_->plan();
  if (plan.stuck != nullptr) {
    fail(static_cast<Sample&>(*plan.stuck), FinishReason::error, "the sequence cannot be scheduled");
    return;
  }
  if (plan.chunks.empty()) return;
  add_drafts(plan);
  StepInput input = batch_.build(plan, options_.block_size);
  add_choices(plan);
  input.choices = choices_;
  note_started(plan);
  const std::size_t chunks = plan.chunks.size();

  const auto planned = Clock::now();
  if (!plan.copies.empty()) model_.copy_blocks(plan.copies);
  const StepOutput output = model_.forward(input);
  const auto computed = Clock::now();
  choose(plan, output);
  const auto chosen = Clock::now();

  for (const News& news : news_) {
    if (news.error) scheduler_->remove(*news.sample, Scheduler::Computed::forget);
  }
  scheduler_->commit();
  for (News& news : news_) tell(news);
  const auto end = Clock::now();
  speculator_.record_step(plan.tokens, end - begin);
  record_step(plan, {.model = computed - planned, .sampling = chosen - computed, .host = (planned - begin) + (end - chosen) + handing_out_}, chunks);
}

void EngineLoop::add_drafts(const StepPlan& plan) {
  drafts_.clear();
  for (const Chunk& chunk : plan.chunks) drafts_.push_back(&static_cast<Sample&>(*chunk.sequence).drafting);
  speculator_.extend(*scheduler_, plan, drafts_);
}

void EngineLoop::note_started(const StepPlan& plan) {
  const auto now = Clock::now();
  for (const Chunk& chunk : plan.chunks) {
    auto& sample = static_cast<Sample&>(*chunk.sequence);
    if (sample.first_step) continue;
    sample.first_step = now;
    counts_.prompt_tokens += static_cast<std::uint64_t>(sample.prompt_tokens());
  }
}

/// Fills choices_ for a model that chooses: where a token depends on its row alone, once the drafts before it are right, it may.
void EngineLoop::add_choices(const StepPlan& plan) {
  choices_.clear();
  if (!model_.chooses_tokens()) return;
  std::int32_t row = 0;
  for (const Chunk& chunk : plan.chunks) {
    if (!chunk.samples) continue;
    for (std::size_t ahead = 0; ahead <= static_cast<std::size_t>(chunk.drafts); ++ahead, ++row) {
      auto choice = samplers_.front().row_choice(sample_point(static_cast<const Sample&>(*chunk.sequence), ahead));
      if (!choice) continue;
      choice->row = row;
      choices_.push_back(*choice);
    }
  }
}

void EngineLoop::choose(const StepPlan& plan, const StepOutput& output) {
  news_.clear();
  split_rows(plan, output);
  sampled_.clear();
  std::span<RowResult> rows = rows_;
  for (const Chunk& chunk : plan.chunks) {
    if (!chunk.samples) continue;
    const std::size_t count = static_cast<std::size_t>(chunk.drafts) + 1;
    sampled_.emplace_back(&chunk, rows.first(count));
    rows = rows.subspan(count);
  }
  choose_together();
  for (const auto& [chunk, of_chunk] : sampled_) news_.push_back(choose(static_cast<Sample&>(*chunk->sequence), of_chunk));
}

/// Where tokens depend on their rows alone, several sequences' are chosen at a time: with a large vocabulary each takes some 20 to
/// 200 us. What is left over is chosen one by one.
void EngineLoop::choose_together() {
  if (model_.chooses_tokens() || samplers_.size() < 2 || sampled_.size() < 2) return;
  model_.share(static_cast<std::int64_t>(sampled_.size()), [this](std::int64_t task, int thread) {
    const auto& [chunk, rows] = sampled_[static_cast<std::size_t>(task)];
    try {
      choose_rows(*chunk, rows, samplers_[static_cast<std::size_t>(thread)]);
    } catch (const std::exception&) {
      // No memory: it is asked for again, and missed, where the engine's loop can say so.
    }
  });
}

/// Up to the first draft that is wrong: the rows behind it don't count.
void EngineLoop::choose_rows(const Chunk& chunk, std::span<RowResult> rows, Sampler& sampler) const {
  const auto& sample = static_cast<const Sample&>(*chunk.sequence);
  for (std::size_t ahead = 0; ahead < rows.size(); ++ahead) {
    const auto choice = sampler.row_choice(sample_point(sample, ahead));
    if (!choice) return;
    rows[ahead].chosen = sampler.choose(rows[ahead].logits, *choice);
    if (ahead + 1 == rows.size() || *rows[ahead].chosen != sample.drafts()[ahead]) return;
  }
}

void EngineLoop::split_rows(const StepPlan& plan, const StepOutput& output) {
  rows_.assign(static_cast<std::size_t>(plan.rows), RowResult{});
  if (!output.chosen.empty() && output.chosen.size() != choices_.size()) {
    throw std::runtime_error("the model chose another number of tokens than it was asked for");
  }
  for (std::size_t i = 0; i < output.chosen.size(); ++i) rows_[static_cast<std::size_t>(choices_[i].row)].chosen = output.chosen[i];
  const auto width = static_cast<std::size_t>(model_.vocab_size());
  std::span<const float> logits = output.logits;
  for (RowResult& row : rows_) {
    if (row.chosen) continue;
    if (width > logits.size()) throw std::runtime_error("the model gave fewer rows of logits than were asked for");
    row.logits = logits.first(width);
    logits = logits.subspan(width);
  }
}

/// Tokens from the rows [drafts + 1] of one sample. Each is chosen exactly as if it were the only one: its row follows
/// the tokens before it for as long as the drafts were what was chosen. What ends the sample in the middle ends it there.
/// Choosing with the one random number of each position and accepting a draft that was chosen is speculative sampling
/// (Leviathan et al., 2023) for drafts of probability 1: a token x is accepted with probability p(x), and what replaces it
/// is distributed as p without x.
EngineLoop::News EngineLoop::choose(Sample& sample, std::span<const RowResult> rows) {
  News news{.sample = &sample, .output = {.sample = sample.index, .text = {}, .tokens = {}, .logprobs = {}, .finish = {}}, .error = {}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto chosen = choose(sample, rows[row]);
    if (!chosen) {
      news.error = std::move(chosen.error());
      break;
    }
    const TokenId token = chosen->token;
    accept(sample, std::move(*chosen), news.output);
    if (news.output.finish || row + 1 == rows.size() || sample.drafts()[row] != token) break;
  }
  speculator_.learn(sample.drafting, news.output.tokens);
  return news;
}

tl::expected<SampledToken, std::string> EngineLoop::choose(const Sample& sample, const RowResult& row) {
  if (!row.chosen) return samplers_.front().sample(row.logits, sample_point(sample));
  if (*row.chosen < 0) return tl::unexpected(std::string(logits_not_finite));
  return SampledToken{*row.chosen, {}};
}

/// Of the token that comes after the next `ahead` ones.
SamplePoint EngineLoop::sample_point(const Sample& sample, std::size_t ahead) const {
  const NewRequest& submitted = sample.request.submitted;
  const std::size_t position = sample.output().size() + ahead;
  SamplePoint point{.params = &submitted.request.sampling,
                    .seed = submitted.seed,
                    .sample = static_cast<std::uint32_t>(sample.index),
                    .position = position,
                    .history = &sample.history,
                    .forbidden = {}};
  if (position < static_cast<std::size_t>(submitted.request.min_tokens)) point.forbidden = sample.request.stop_tokens;
  return point;
}

void EngineLoop::accept(Sample& sample, SampledToken chosen, Output& output) {
  const SamplingParams& sampling = sample.request.submitted.request.sampling;
  sample.append(chosen.token);
  ++counts_.generated_tokens;
  if (uses_history(sampling)) sample.history.add_output(chosen.token);
  if (!sample.first_token) sample.first_token = Clock::now();
  output.tokens.push_back(chosen.token);
  if (sampling.logprobs) output.logprobs.push_back(std::move(chosen.logprobs));
  output.finish = finish_after(sample, chosen.token, output.text);
}

/// Moves the output on.
void EngineLoop::tell(News& news) {
  Sample& sample = *news.sample;
  if (news.output.finish) return finish(sample, std::move(news.output));
  if (!news.output.tokens.empty()) outgoing_.push_back({sample.request.submitted.delivery, sample.request.submitted.id, std::move(news.output), false});
  if (news.error) fail(sample, FinishReason::error, *news.error);
}

/// Appends the text that the token adds; the end where the sample ends with it.
std::optional<Finish> EngineLoop::finish_after(Sample& sample, TokenId token, std::string& text) {
  const auto& stops = sample.request.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
    text += sample.text.finish();
    return Finish{.reason = FinishReason::stop, .stop = token, .error = {}, .usage = {}, .timings = {}};
  }
  auto piece = sample.text.push(token);
  text += piece.text;
  if (piece.stopped) {
    return Finish{.reason = FinishReason::stop, .stop = sample.text.matched_stop(), .error = {}, .usage = {}, .timings = {}};
  }
  if (sample.num_tokens() < sample.max_total_tokens()) return std::nullopt;
  text += sample.text.finish();
  if (!sample.text.matched_stop().empty()) {
    return Finish{.reason = FinishReason::stop, .stop = sample.text.matched_stop(), .error = {}, .usage = {}, .timings = {}};
  }
  return Finish{.reason = FinishReason::length, .stop = {}, .error = {}, .usage = {}, .timings = {}};
}

/// Ends a sample: its blocks go back, its request goes when it was the last.
void EngineLoop::finish(Sample& sample, Output output) {
  ActiveRequest& owner = sample.request;
  const Request& request = owner.submitted.request;
  const bool failed = output.finish->reason == FinishReason::error;
  const auto computed = sample.tokens().first(static_cast<std::size_t>(sample.computed()));
  scheduler_->remove(sample, failed ? Scheduler::Computed::forget : Scheduler::Computed::keep);
  if (request.pin_ttl.count() > 0 && !failed) {
    cache_->pin(0, request.tenant, request.session, computed, Clock::now() + request.pin_ttl);
  }
  report(sample, std::move(output));
  if (owner.unfinished > 0) return;
  requests_in_flight.fetch_sub(1, std::memory_order_relaxed);
  requests_.erase(owner.submitted.id);
}

/// Counts the end of a sample and tells its caller, with usage and timings.
void EngineLoop::report(Sample& sample, Output output) {
  const NewRequest& submitted = sample.request.submitted;
  const auto since = [&](const std::optional<Clock::time_point>& time) {
    return time ? *time - submitted.submitted : std::chrono::nanoseconds{0};
  };
  Finish& finish = *output.finish;
  finish.usage = {sample.prompt_tokens(), sample.cached_tokens(), static_cast<int>(sample.output().size()),
                  sample.drafting.accepted_prediction_tokens, sample.drafting.rejected_prediction_tokens};
  finish.timings = {since(sample.first_step), since(sample.first_token), Clock::now() - submitted.submitted};
  ++counts_.samples_finished[static_cast<std::size_t>(finish.reason)];
  sample.ended = true;
  --sample.request.unfinished;
  outgoing_.push_back({submitted.delivery, submitted.id, std::move(output), sample.request.unfinished == 0});
}

Output EngineLoop::ended_output(Sample& sample, FinishReason reason, const std::string& error) {
  Output output{.sample = sample.index, .text = sample.text.finish(), .tokens = {}, .logprobs = {}, .finish = Finish{}};
  output.finish->reason = reason;
  output.finish->error = error;
  return output;
}

void EngineLoop::fail(Sample& sample, FinishReason reason, const std::string& error) {
  finish(sample, ended_output(sample, reason, error));
}

void EngineLoop::hand_out() {
  const auto begin = Clock::now();
  for (Outgoing& out : outgoing_) {
    const bool fine = out.delivery->deliver(std::move(out.output));
    if (!fine || out.last) out.delivery->close();
    if (!fine) inbox_->post(CancelRequest{out.request});
  }
  outgoing_.clear();
  handing_out_ = Clock::now() - begin;
}

/// Fails what the step that went wrong was computing; everything, when nothing was running.
void EngineLoop::fail_running(const std::string& error) {
  std::vector<Sequence*> failed(scheduler_->running().begin(), scheduler_->running().end());
  if (failed.empty()) failed.assign(scheduler_->waiting().begin(), scheduler_->waiting().end());
  for (Sequence* sequence : failed) fail(static_cast<Sample&>(*sequence), FinishReason::error, error);
}

/// Tells everybody and forgets the sequences without asking the scheduler about them; it must be made anew after this.
void EngineLoop::abandon_all(const std::string& error) {
  for (auto& [id, request] : requests_) {
    for (auto& sample : request->samples) {
      if (!sample->ended) report(*sample, ended_output(*sample, FinishReason::error, error));
    }
    requests_in_flight.fetch_sub(1, std::memory_order_relaxed);
  }
  requests_.clear();
}

void EngineLoop::cancel_all() {
  while (!requests_.empty()) handle(CancelRequest{requests_.begin()->first});
}

void EngineLoop::record_step(const StepPlan& plan, StepCost cost, std::size_t chunks) {
  const kernels::OpCounters work = model_.counters();
  cost.tokens = static_cast<std::uint64_t>(plan.tokens);
  cost.sequences = chunks;
  cost.flops = work.flops - work_before_.flops;
  cost.weight_bytes = work.weight_bytes - work_before_.weight_bytes;
  cost.kv_bytes = work.kv_bytes - work_before_.kv_bytes;
  work_before_ = work;

  ++counts_.steps;
  counts_.last_step = cost;
  StepCost& all = counts_.all_steps;
  all.tokens += cost.tokens;
  all.sequences += cost.sequences;
  all.flops += cost.flops;
  all.weight_bytes += cost.weight_bytes;
  all.kv_bytes += cost.kv_bytes;
  all.model += cost.model;
  all.sampling += cost.sampling;
  all.host += cost.host;
  const double ms = std::chrono::duration<double, std::milli>(cost.model + cost.sampling + cost.host).count();
  const auto& limits = EngineStats::step_bucket_ms;
  ++counts_.step_times[static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), ms) - limits.begin())];
}

void EngineLoop::publish_stats() {
  const SchedulerCounters& now = scheduler_->counters();
  const BlockPool& pool = cache_->pool();
  counts_.prefill_tokens = counted_before_.prefill_tokens + now.prefill_tokens;
  counts_.prefix_query_tokens = counted_before_.prefix_query_tokens + now.prefix_query_tokens;
  counts_.prefix_hit_tokens = counted_before_.prefix_hit_tokens + now.prefix_hit_tokens;
  counts_.blocks_copied = counted_before_.blocks_copied + now.blocks_copied;
  counts_.preemptions = counted_before_.preemptions + now.preemptions;
  counts_.watchdog_trips = counted_before_.watchdog_trips + now.watchdog_trips;
  counts_.blocks_evicted = evicted_before_ + cache_->prefixes().evictions();
  counts_.drafts = speculator_.counts();
  counts_.waiting = static_cast<int>(scheduler_->waiting().size());
  counts_.running = static_cast<int>(scheduler_->running().size());
  counts_.block_size = options_.block_size;
  counts_.bytes_per_block = model_.kv_bytes_per_block(options_.block_size, options_.kv_type);
  counts_.blocks_total = pool.total();
  counts_.blocks_free = pool.free_count();
  counts_.blocks_cached = pool.cached_count();
  counts_.blocks_held = pool.held_count();
  counts_.blocks_pinned = cache_->pinned_blocks();
  const std::lock_guard lock(stats_mutex_);
  published_ = counts_;
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return published_;
}

}  // namespace fixpoint::engine::detail
