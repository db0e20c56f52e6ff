#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/kv_cache.h"
#include "engine/sequence.h"
#include "kernels/backend.h"

namespace fixpoint::engine {

struct SchedulerOptions {
  int max_running = 256;      ///< sequences that hold blocks at a time
  int max_step_tokens = 512;  ///< all tokens of a step; raised to max_running where it is less
  int ageing_steps = 64;      ///< waiting so many steps is worth one level of priority
};

/// Rows of logits that a step may have for the sake of drafts, though fewer sequences run.
inline constexpr int kRowsForDrafts = 65;

/// The tokens [begin, begin + count) of a sequence, computed in this step, and after them `drafts` of its draft tokens.
struct Chunk {
  Sequence* sequence = nullptr;
  int begin = 0;
  int count = 0;
  bool samples = false;  ///< it reaches the last token: the next one is sampled from its row, and one more from each draft's
  int drafts = 0;
};

/// One step: decided by `plan`, carried out by the model, made true by `commit`.
struct StepPlan {
  std::vector<Chunk> chunks;                 ///< decode first
  std::vector<kernels::BlockCopy> copies;    ///< before the chunks
  int tokens = 0;                            ///< drafts included
  int rows = 0;                              ///< of logits: one for each chunk that samples, and one for each draft
  Sequence* stuck = nullptr;  ///< the watchdog's find: it can never run; fail it and plan again
};

struct SchedulerCounters {
  std::uint64_t preemptions = 0;
  std::uint64_t watchdog_trips = 0;
  std::uint64_t prefix_query_tokens = 0;
  std::uint64_t prefix_hit_tokens = 0;
  std::uint64_t blocks_copied = 0;
  std::uint64_t prefill_tokens = 0;  ///< planned tokens of chunks that are not decode
};

/// Decides which sequences compute how many tokens in each step. Knows blocks and tokens, no tensors. Holds pointers to
/// the sequences between `add` and `remove`; they must stay where they are. Not synchronised.
///
/// One order rules everything: rank = step of arrival - priority * ageing_steps, ties to the earlier id. It is fixed, so
/// ageing needs no bookkeeping. The most senior sequence is never preempted, so there is always progress; a newcomer's
/// rank grows with time, so nobody starves.
///
/// Who waits for a prefix that another one is computing keeps its place: juniors leave it a slot and blocks. So parallel drafts
/// of one task, which share their prompt, run side by side as soon as it is computed.
///
/// A sequence gets the blocks for all tokens it has when it is admitted, so a prefill never runs out half-way; decode
/// takes a block at a time, and when there is none the most junior running sequence gives its blocks back and will
/// compute its tokens again. After its k-th preemption a sequence returns only when 2^k blocks of growth are left for
/// each running sequence (or for as long as those may run), which bounds the number of its preemptions.
class Scheduler {
 public:
  Scheduler(KvCache& cache, const SchedulerOptions& options);

  void add(Sequence& sequence);
  /// What the sequence has computed stays in the prefix index (`keep`) or is forgotten, for when a step failed half-way.
  enum class Computed : bool { forget, keep };
  /// In whatever state it is; between `plan` and `commit` it leaves the plan too (when the forward pass is over). Its
  /// blocks are given back at once.
  void remove(Sequence& sequence, Computed computed);

  /// Valid until the next call. Every chunk's blocks are in place when it returns.
  [[nodiscard]] const StepPlan& plan();
  /// Between `plan` and the forward pass: lets a chunk that decodes compute draft tokens too, as many of them as the step's
  /// tokens and rows, the sequence's length and the blocks that nobody holds allow. Takes nothing from anybody: when the
  /// step is committed, blocks that no accepted token needs are given back. Returns how many.
  int add_drafts(std::size_t chunk, std::span<const TokenId> drafts);
  /// Draft tokens that the step still has room for, blocks aside.
  [[nodiscard]] int room_for_drafts() const;
  /// The step was computed, and the sampled tokens were appended: all but a sequence's last are drafts that were right, and
  /// so computed. Counts the tokens, publishes the blocks.
  void commit();

  [[nodiscard]] bool has_work() const { return !waiting_.empty() || !running_.empty(); }
  [[nodiscard]] std::span<Sequence* const> waiting() const { return waiting_; }
  [[nodiscard]] std::span<Sequence* const> running() const { return running_; }
  [[nodiscard]] const SchedulerCounters& counters() const { return counters_; }

  /// Blocks a sequence needs at its longest, alone. The last token is never computed.
  [[nodiscard]] static int blocks_at_most(const KvCache& cache, std::int64_t max_total_tokens);
  /// Throws std::logic_error when a table, a count or an order is wrong. For tests.
  void check() const;

 private:
  enum class Admission : std::uint8_t { admitted, deferred, no_room };

  [[nodiscard]] static bool more_senior(const Sequence* a, const Sequence* b);
  bool grow_running();
  void admit();
  [[nodiscard]] int free_slots() const { return options_.max_running - static_cast<int>(running_.size()) - promised_.slots; }
  [[nodiscard]] int free_blocks() const { return cache_->available() - promised_.blocks; }
  [[nodiscard]] std::int64_t budget_before(const Sequence& sequence) const;
  Admission try_admit(Sequence& sequence);
  bool make_room(const Sequence& sequence, PrefixMatch& match);
  bool preempt_for(const Sequence& sequence, int blocks);
  [[nodiscard]] int growth_reserve(const Sequence& sequence) const;
  bool find_producer(Sequence& sequence, int matched_tokens) const;
  void assign_chunks();
  void assign_chunk(Sequence& sequence);
  void watch();
  void preempt(Sequence& sequence);
  void give_back(Sequence& sequence, Computed computed);
  void drop_drafts(Sequence& sequence);
  void publish(Sequence& sequence);
  void publish_partial(Sequence& sequence);

  KvCache* cache_;
  SchedulerOptions options_;
  std::int64_t step_ = 0;
  std::vector<Sequence*> waiting_;  // by rank
  std::vector<Sequence*> running_;  // by rank
  struct Promised {
    int slots = 0, blocks = 0;
  };
  Promised promised_;               // while newcomers are admitted: to the more senior ones that wait for a prefix
  StepPlan plan_;
  SchedulerCounters counters_;
};

}  // namespace fixpoint::engine
