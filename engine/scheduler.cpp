#include "engine/scheduler.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace fixpoint::engine {
namespace {

/// All but the last token: that one is always computed, since its logits are wanted.
std::span<const TokenId> reusable(const Sequence& sequence) {
  return sequence.tokens().first(static_cast<std::size_t>(sequence.num_tokens() - 1));
}

/// Ranks are fixed while a sequence is inside, so both lists stay sorted by insertion alone.
template <typename Rank>
void insert_by_rank(std::vector<Sequence*>& list, Sequence& sequence, Rank less) {
  list.insert(std::upper_bound(list.begin(), list.end(), &sequence, less), &sequence);
}

void erase(std::vector<Sequence*>& list, const Sequence& sequence) {
  list.erase(std::find(list.begin(), list.end(), &sequence));
}

}  // namespace

Scheduler::Scheduler(KvCache& cache, const SchedulerOptions& options) : cache_(&cache), options_(options) {
  options_.max_running = std::max(options_.max_running, 1);
  options_.max_step_tokens = std::max(options_.max_step_tokens, options_.max_running);
  options_.ageing_steps = std::max(options_.ageing_steps, 1);
}

int Scheduler::blocks_at_most(const KvCache& cache, std::int64_t max_total_tokens) {
  return cache.blocks_for(max_total_tokens - 1);
}

bool Scheduler::more_senior(const Sequence* a, const Sequence* b) {
  return a->rank_ != b->rank_ ? a->rank_ < b->rank_ : a->id_ < b->id_;
}

void Scheduler::add(Sequence& sequence) {
  if (sequence.state_ != Sequence::State::outside) throw std::logic_error("scheduler: the sequence is inside already");
  sequence.rank_ = step_ - static_cast<std::int64_t>(sequence.priority_) * options_.ageing_steps;
  insert_by_rank(waiting_, sequence, more_senior);
  sequence.state_ = Sequence::State::waiting;  // last: the list may have no memory to grow
}

void Scheduler::remove(Sequence& sequence, Computed computed) {
  for (Chunk& chunk : plan_.chunks) {
    if (chunk.sequence == &sequence) chunk.sequence = nullptr;
  }
  if (sequence.state_ == Sequence::State::waiting) erase(waiting_, sequence);
  if (sequence.state_ == Sequence::State::running) {
    erase(running_, sequence);
    give_back(sequence, computed);
  }
  sequence.producer_ = nullptr;
  sequence.state_ = Sequence::State::outside;
}

void Scheduler::give_back(Sequence& sequence, Computed computed) {
  if (computed == Computed::keep) {
    publish_partial(sequence);
  } else {
    auto& prefixes = cache_->prefixes();
    for (auto block = sequence.blocks_.rbegin(); block != sequence.blocks_.rend(); ++block) {
      if (!cache_->pool().indexed(block->id())) continue;
      if (cache_->pool().refs(block->id()) > 1 || !prefixes.forget(block->id())) break;
    }
  }
  sequence.copy_source_.reset();
  sequence.drafts_.clear();
  release_tail_first(sequence.blocks_);
  sequence.computed_ = 0;
  sequence.published_blocks_ = 0;
  for (Sequence* waiting : waiting_) {
    if (waiting->producer_ == &sequence) waiting->producer_ = nullptr;
  }
}

void Scheduler::preempt(Sequence& sequence) {
  erase(running_, sequence);
  give_back(sequence, Computed::keep);
  ++sequence.preemptions_;
  ++counters_.preemptions;
  sequence.state_ = Sequence::State::waiting;
  insert_by_rank(waiting_, sequence, more_senior);
}

const StepPlan& Scheduler::plan() {
  ++step_;
  plan_.chunks.clear();
  plan_.copies.clear();
  plan_.tokens = 0;
  plan_.rows = 0;
  plan_.stuck = nullptr;
  // Where blocks had to be taken away there is no room for newcomers; letting some in would only move the lack on.
  if (grow_running()) admit();
  assign_chunks();
  if (plan_.chunks.empty() && has_work()) watch();
  return plan_;
}

/// Gives every running sequence the blocks its tokens need, the senior ones first. False when somebody was preempted.
bool Scheduler::grow_running() {
  const auto preemptions = counters_.preemptions;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const int missing = cache_->blocks_for(sequence.num_tokens()) - static_cast<int>(sequence.blocks_.size());
    while (missing > 0 && !cache_->allocate(missing, sequence.blocks_)) {
      if (running_.size() == 1 && cache_->drop_oldest_pin()) continue;
      Sequence& junior = *running_.back();
      preempt(junior);
      if (&junior == &sequence) break;
    }
  }
  return counters_.preemptions == preemptions;
}

void Scheduler::admit() {
  promised_ = {};
  for (std::size_t i = 0; i < waiting_.size();) {
    Sequence& sequence = *waiting_[i];
    if (budget_before(sequence) < 1) break;
    const Admission admission = try_admit(sequence);
    if (admission == Admission::no_room) break;
    if (admission != Admission::deferred) continue;
    ++promised_.slots;
    promised_.blocks += cache_->blocks_for(sequence.num_tokens()) - sequence.producer_tokens_ / cache_->block_size();
    ++i;
  }
}

/// Tokens of this step that decode and more senior prefills leave to the sequence.
std::int64_t Scheduler::budget_before(const Sequence& sequence) const {
  std::int64_t left = options_.max_step_tokens;
  for (const Sequence* running : running_) {
    if (running->uncomputed() == 1 || more_senior(running, &sequence)) left -= running->uncomputed();
  }
  return left;
}

Scheduler::Admission Scheduler::try_admit(Sequence& sequence) {
  if (sequence.producer_ != nullptr) {
    if (sequence.producer_->computed_ < sequence.producer_tokens_) return Admission::deferred;
    sequence.producer_ = nullptr;
  }
  PrefixMatch match = cache_->prefixes().match(sequence.tenant_, reusable(sequence));
  if (find_producer(sequence, match.tokens(cache_->block_size()))) return Admission::deferred;
  if (!make_room(sequence, match)) return Admission::no_room;

  sequence.computed_ = match.tokens(cache_->block_size());
  sequence.published_blocks_ = static_cast<int>(match.blocks.size());
  sequence.copy_source_ = std::move(match.partial);
  sequence.blocks_ = std::move(match.blocks);
  if (!cache_->allocate(cache_->blocks_for(sequence.num_tokens()) - sequence.published_blocks_, sequence.blocks_)) {
    throw std::logic_error("scheduler: blocks that were there are gone");
  }
  if (!std::exchange(sequence.has_run_, true)) {
    sequence.cached_tokens_ = sequence.computed_;
    counters_.prefix_query_tokens += static_cast<std::uint64_t>(sequence.prompt_tokens_);
    counters_.prefix_hit_tokens += static_cast<std::uint64_t>(sequence.cached_tokens_);
  }
  erase(waiting_, sequence);
  sequence.state_ = Sequence::State::running;
  insert_by_rank(running_, sequence, more_senior);
  return Admission::admitted;
}

/// True when the sequence's blocks (besides the matched ones) and a slot are to be had, if need be by preempting juniors of
/// lower priority. May give up the partial match, whose source is one block more to hold.
bool Scheduler::make_room(const Sequence& sequence, PrefixMatch& match) {
  const int need = cache_->blocks_for(sequence.num_tokens()) - static_cast<int>(match.blocks.size());
  const int wanted = need + growth_reserve(sequence);
  const bool slot = free_slots() > 0;
  if (slot && wanted <= free_blocks()) return true;
  match.drop_partial();
  if (slot && wanted <= free_blocks()) return true;
  if (!running_.empty()) return preempt_for(sequence, wanted);
  while (need > cache_->available() && cache_->drop_oldest_pin()) {
  }
  return need <= cache_->available();
}

/// Preempts the most junior running sequences of lower priority and rank, if that makes the room; else nobody.
bool Scheduler::preempt_for(const Sequence& sequence, int blocks) {
  int slots = free_slots();
  int available = free_blocks();
  std::size_t keep = running_.size();
  while ((slots < 1 || available < blocks) && keep > 0) {
    const Sequence& junior = *running_[keep - 1];
    if (!more_senior(&sequence, &junior) || junior.priority_ >= sequence.priority_) break;
    --keep;
    ++slots;
    for (const BlockRef& block : junior.blocks_) available += cache_->pool().refs(block.id()) == 1 ? 1 : 0;
  }
  if (slots < 1 || available < blocks) return false;
  while (running_.size() > keep) preempt(*running_.back());
  return true;
}

/// Blocks to leave for the growth of those that run, so that a newcomer isn't preempted soon after.
int Scheduler::growth_reserve(const Sequence& sequence) const {
  const int growth = 1 << std::min(sequence.preemptions_, 20);
  std::int64_t reserve = 0;
  for (const Sequence* running : running_) {
    const int left = blocks_at_most(*cache_, running->max_total_tokens_) - static_cast<int>(running->blocks_.size());
    reserve += std::clamp(left, 0, growth);
  }
  return static_cast<int>(std::min<std::int64_t>(reserve, cache_->pool().total()));
}

/// Whether a running prefill is about to compute at least a block more of this sequence's prefix than the cache has: then
/// it is cheaper to wait for it. A more urgent sequence doesn't wait for a less urgent one.
bool Scheduler::find_producer(Sequence& sequence, int matched_tokens) const {
  int best = matched_tokens + cache_->block_size() - 1;
  for (const Sequence* running : running_) {
    if (running->uncomputed() <= 1 || running->priority_ < sequence.priority_ || running->tenant_ != sequence.tenant_) continue;
    const int common = common_prefix(reusable(sequence), running->tokens());
    if (common <= best || running->computed_ >= common) continue;
    best = common;
    sequence.producer_ = running;
    sequence.producer_tokens_ = common;
  }
  return sequence.producer_ != nullptr;
}

void Scheduler::assign_chunks() {
  for (Sequence* sequence : running_) {
    if (sequence->uncomputed() == 1) assign_chunk(*sequence);
  }
  for (Sequence* sequence : running_) {
    if (sequence->uncomputed() > 1) assign_chunk(*sequence);
  }
}

void Scheduler::assign_chunk(Sequence& sequence) {
  const int count = std::min(sequence.uncomputed(), options_.max_step_tokens - plan_.tokens);
  if (count < 1) return;
  const bool samples = count == sequence.uncomputed();
  plan_.chunks.push_back({.sequence = &sequence, .begin = sequence.computed_, .count = count, .samples = samples});
  plan_.tokens += count;
  plan_.rows += samples ? 1 : 0;
  if (count > 1 || sequence.computed_ < sequence.prompt_tokens_) counters_.prefill_tokens += static_cast<std::uint64_t>(count);
  if (sequence.copy_source_) {
    const BlockId to = sequence.blocks_[static_cast<std::size_t>(sequence.published_blocks_)].id();
    plan_.copies.push_back({sequence.copy_source_.id(), to});
    ++counters_.blocks_copied;
  }
}

/// There is work and nobody does any. No path leads here while submitted sequences fit the pool; should one be found,
/// drop everything optional and try again, and if that doesn't help name a culprit, so that those behind it go on.
void Scheduler::watch() {
  ++counters_.watchdog_trips;
  while (cache_->drop_oldest_pin()) {
  }
  for (Sequence* sequence : waiting_) sequence->producer_ = nullptr;
  admit();
  assign_chunks();
  if (plan_.chunks.empty()) plan_.stuck = running_.empty() ? waiting_.front() : running_.front();
}

int Scheduler::room_for_drafts() const {
  const int rows = std::max(options_.max_running, kRowsForDrafts) - plan_.rows;
  return std::max(0, std::min(rows, options_.max_step_tokens - plan_.tokens));
}

int Scheduler::add_drafts(std::size_t index, std::span<const TokenId> drafts) {
  Chunk& chunk = plan_.chunks.at(index);
  if (!chunk.samples || chunk.count != 1 || chunk.drafts > 0) return 0;
  Sequence& sequence = *chunk.sequence;
  const std::int64_t tokens = sequence.num_tokens();
  const std::int64_t blocks = static_cast<std::int64_t>(sequence.blocks_.size()) + cache_->available();
  // Of the tokens sampled, one more than there are drafts, all must fit the sequence.
  const std::int64_t room = std::min({static_cast<std::int64_t>(room_for_drafts()), sequence.max_total_tokens_ - tokens - 1,
                                      blocks * cache_->block_size() - tokens});
  const auto count = static_cast<int>(std::min(static_cast<std::int64_t>(drafts.size()), room));
  if (count < 1) return 0;
  const int missing = cache_->blocks_for(tokens + count) - static_cast<int>(sequence.blocks_.size());
  if (missing > 0 && !cache_->allocate(missing, sequence.blocks_)) {
    throw std::logic_error("scheduler: blocks that were there are gone");
  }
  sequence.drafts_.assign(drafts.begin(), drafts.begin() + count);
  chunk.drafts = count;
  plan_.tokens += count;
  plan_.rows += count;
  return count;
}

/// Blocks behind what is computed were for drafts that were wrong; nobody ever knew of them.
void Scheduler::drop_drafts(Sequence& sequence) {
  sequence.drafts_.clear();
  const auto needed = static_cast<std::size_t>(cache_->blocks_for(sequence.computed_));
  while (sequence.blocks_.size() > needed) sequence.blocks_.pop_back();
}

void Scheduler::commit() {
  for (const Chunk& chunk : plan_.chunks) {
    if (chunk.sequence == nullptr) continue;
    Sequence& sequence = *chunk.sequence;
    sequence.copy_source_.reset();
    const int end = chunk.begin + chunk.count;
    const int accepted = chunk.samples ? std::max(0, sequence.num_tokens() - end - 1) : 0;
    if (accepted > chunk.drafts) throw std::logic_error("scheduler: more tokens were appended than computed");
    sequence.computed_ = end + accepted;
    if (chunk.drafts > 0) drop_drafts(sequence);
    publish(sequence);
    const bool prefilled = chunk.samples && (chunk.count > 1 || end == sequence.prompt_tokens_);
    if (prefilled) publish_partial(sequence);
  }
  plan_.chunks.clear();
  if (!cache_->pool().balanced()) throw std::logic_error("scheduler: free + cached + held != total");
}

/// Puts whole blocks into the index; where an equal block is there already, goes on with that one.
void Scheduler::publish(Sequence& sequence) {
  const int size = cache_->block_size();
  for (; (sequence.published_blocks_ + 1) * size <= sequence.computed_; ++sequence.published_blocks_) {
    const auto i = static_cast<std::size_t>(sequence.published_blocks_);
    const auto parent = i == 0 ? std::nullopt : std::optional(sequence.blocks_[i - 1].id());
    const auto tokens = sequence.tokens().subspan(i * static_cast<std::size_t>(size), static_cast<std::size_t>(size));
    sequence.blocks_[i] = cache_->prefixes().insert(sequence.tenant_, parent, tokens, std::move(sequence.blocks_[i]));
  }
}

/// Puts the tokens of the last, not yet whole block into the index. The owner may go on writing behind them.
void Scheduler::publish_partial(Sequence& sequence) {
  const int tail = sequence.computed_ - sequence.published_blocks_ * cache_->block_size();
  if (tail < 1 || sequence.copy_source_) return;
  const auto i = static_cast<std::size_t>(sequence.published_blocks_);
  const auto parent = i == 0 ? std::nullopt : std::optional(sequence.blocks_[i - 1].id());
  const auto tokens = sequence.tokens().subspan(i * static_cast<std::size_t>(cache_->block_size()), static_cast<std::size_t>(tail));
  sequence.blocks_[i] = cache_->prefixes().insert(sequence.tenant_, parent, tokens, std::move(sequence.blocks_[i]));
}

void Scheduler::check() const {
  const auto fail = [](const Sequence& s, const char* what) {
    throw std::logic_error("scheduler: sequence " + std::to_string(s.id()) + " " + what);
  };
  for (const Sequence* s : waiting_) {
    if (s->state_ != Sequence::State::waiting) fail(*s, "waits in a wrong state");
    if (!s->blocks_.empty() || s->computed_ != 0 || s->copy_source_) fail(*s, "waits and holds blocks");
    if (s->producer_ != nullptr && std::find(running_.begin(), running_.end(), s->producer_) == running_.end()) {
      fail(*s, "waits for a sequence that doesn't run");
    }
  }
  for (const Sequence* s : running_) {
    if (s->state_ != Sequence::State::running) fail(*s, "runs in a wrong state");
    if (static_cast<int>(s->blocks_.size()) < cache_->blocks_for(s->computed_)) fail(*s, "has computed more than its blocks hold");
    if (s->published_blocks_ > s->computed_ / cache_->block_size()) fail(*s, "has published more than it computed");
    for (int i = 0; i < s->published_blocks_; ++i) {
      if (!cache_->pool().indexed(s->blocks_[static_cast<std::size_t>(i)].id())) fail(*s, "holds a published block that isn't indexed");
    }
  }
  if (!std::is_sorted(waiting_.begin(), waiting_.end(), more_senior) || !std::is_sorted(running_.begin(), running_.end(), more_senior)) {
    throw std::logic_error("scheduler: a list is out of order");
  }
  if (static_cast<int>(running_.size()) > options_.max_running) throw std::logic_error("scheduler: too many run");
}

}  // namespace fixpoint::engine
