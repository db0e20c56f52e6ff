#include "tests/engine/scheduling/driver.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/counter_rng.h"

namespace fixpoint::engine::testing {

Driver::Driver(const Options& options)
    : model(FakeModel::Shape{.vocab = 64, .padding = 0, .context = 1 << 20}),
      cache(options.num_blocks, options.block_size, options.max_pinned_blocks),
      scheduler(cache, options.scheduler) {
  model.allocate_kv(options.num_blocks, options.block_size, kernels::KvType::f32);
}

Driver::~Driver() {
  for (auto& [id, sequence] : sequences_) scheduler.remove(*sequence, Scheduler::Computed::keep);
}

SequenceId Driver::add(std::vector<TokenId> prompt, int max_tokens, int priority, const std::string& tenant) {
  const SequenceId id = next_id_++;
  const auto total = static_cast<std::int64_t>(prompt.size()) + max_tokens;
  auto& sequence = sequences_[id] = std::make_unique<Sequence>(
      SequenceSpec{.id = id, .prompt = std::move(prompt), .max_total_tokens = total, .tenant = tenant, .priority = priority});
  scheduler.add(*sequence);
  return id;
}

void Driver::cancel(SequenceId id) {
  scheduler.remove(*sequences_.at(id), Scheduler::Computed::keep);
  sequences_.erase(id);
}

void Driver::finish(Sequence& sequence, bool stuck) {
  Result& result = results_[sequence.id()];
  result.output.assign(sequence.output().begin(), sequence.output().end());
  result.cached_tokens = sequence.cached_tokens();
  result.preemptions = sequence.preemptions();
  result.finished_in_step = steps_;
  result.stuck = stuck;
  scheduler.remove(sequence, Scheduler::Computed::keep);
  sequences_.erase(sequence.id());
}

void Driver::add_drafts(const StepPlan& plan) {
  if (!draft) return;
  const int available = cache.available();
  const int running = static_cast<int>(scheduler.running().size());
  for (std::size_t i = 0; i < plan.chunks.size(); ++i) drafted_tokens += scheduler.add_drafts(i, draft(*plan.chunks[i].sequence));
  EXPECT_GE(cache.available(), 0);
  EXPECT_LE(cache.available(), available);
  EXPECT_EQ(static_cast<int>(scheduler.running().size()), running) << "a draft preempted somebody";
}

/// The greedy tokens of the rows [drafts + 1], for as long as the drafts were right.
void Driver::append(Sequence& sequence, int drafts, std::span<const float> logits) {
  const auto width = static_cast<std::size_t>(model.vocab_size());
  for (std::size_t i = 0; i <= static_cast<std::size_t>(drafts); ++i) {
    const auto row = logits.subspan(i * width, width);
    const auto token = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
    sequence.append(token);
    Result& result = results_[sequence.id()];
    if (result.first_token_in_step == 0) result.first_token_in_step = steps_;
    if (i == static_cast<std::size_t>(drafts) || sequence.drafts()[i] != token) break;
    ++accepted_tokens;
  }
}

bool Driver::step() {
  if (!scheduler.has_work()) return false;
  ++steps_;
  const StepPlan& plan = scheduler.plan();
  if (on_plan) on_plan(plan);
  if (plan.stuck != nullptr) {
    finish(*plan.stuck, true);
    return true;
  }
  add_drafts(plan);
  const std::vector<Chunk> chunks = plan.chunks;
  const StepInput input = batch_.build(plan, cache.block_size());
  model.copy_blocks(plan.copies);
  auto logits = model.forward(input).logits;
  computed_tokens += plan.tokens;
  step_tokens.push_back(plan.tokens);
  for (const Chunk& chunk : chunks) {
    if (!chunk.samples) continue;
    const auto floats = (static_cast<std::size_t>(chunk.drafts) + 1) * static_cast<std::size_t>(model.vocab_size());
    append(*chunk.sequence, chunk.drafts, logits.first(floats));
    logits = logits.subspan(floats);
  }
  scheduler.commit();
  for (const Chunk& chunk : chunks) {
    if (chunk.samples && chunk.sequence->num_tokens() >= chunk.sequence->max_total_tokens()) finish(*chunk.sequence, false);
  }
  scheduler.check();
  cache.prefixes().check();
  cache.pool().check();
  return true;
}

void Driver::run(int limit) {
  for (int i = 0; i < limit; ++i) {
    if (!step()) return;
  }
  FAIL() << "not done after " << limit << " steps";
}

std::vector<TokenId> random_tokens(int n, std::uint64_t seed) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(mix64(seed * 1000003 + i) % 64);
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> a, std::span<const TokenId> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace fixpoint::engine::testing
