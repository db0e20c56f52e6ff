#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/block_pool.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine {

using SequenceId = std::uint64_t;

/// What the scheduler must know of a sequence.
struct SequenceSpec {
  SequenceId id = 0;                ///< unique; later ones are larger
  std::vector<TokenId> prompt;      ///< at least one token
  std::int64_t max_total_tokens = 0;  ///< prompt and output; more than the prompt
  std::string tenant;
  int priority = 0;
};

/// One sample of one request: its tokens so far, and how many of them have keys and values in which blocks. Where the
/// prompt ends and the output begins never changes, also when preemption takes the blocks away and all is computed again.
/// Tokens are appended by who samples; everything else is changed by the Scheduler alone.
class Sequence {
 public:
  explicit Sequence(SequenceSpec spec)
      : id_(spec.id), tenant_(std::move(spec.tenant)), priority_(spec.priority), prompt_tokens_(static_cast<int>(spec.prompt.size())),
        max_total_tokens_(spec.max_total_tokens), tokens_(std::move(spec.prompt)) {}
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  void append(TokenId token) { tokens_.push_back(token); }

  [[nodiscard]] SequenceId id() const { return id_; }
  [[nodiscard]] const std::string& tenant() const { return tenant_; }
  [[nodiscard]] int priority() const { return priority_; }
  [[nodiscard]] std::span<const TokenId> tokens() const { return tokens_; }
  [[nodiscard]] std::span<const TokenId> output() const { return tokens().subspan(static_cast<std::size_t>(prompt_tokens_)); }
  [[nodiscard]] int num_tokens() const { return static_cast<int>(tokens_.size()); }
  [[nodiscard]] int prompt_tokens() const { return prompt_tokens_; }
  [[nodiscard]] std::int64_t max_total_tokens() const { return max_total_tokens_; }

  /// Leading tokens whose keys and values are in `blocks`; 0 while it waits.
  [[nodiscard]] int computed() const { return computed_; }
  [[nodiscard]] int uncomputed() const { return num_tokens() - computed_; }
  [[nodiscard]] const std::vector<BlockRef>& blocks() const { return blocks_; }
  /// Guesses at the next tokens that the step at hand computes; none between steps.
  [[nodiscard]] std::span<const TokenId> drafts() const { return drafts_; }
  /// Prompt tokens found in the cache when it first ran.
  [[nodiscard]] int cached_tokens() const { return cached_tokens_; }
  [[nodiscard]] int preemptions() const { return preemptions_; }
  [[nodiscard]] bool has_run() const { return has_run_; }

 private:
  friend class Scheduler;
  enum class State : std::uint8_t { outside, waiting, running };

  const SequenceId id_;
  const std::string tenant_;
  const int priority_;
  const int prompt_tokens_;
  const std::int64_t max_total_tokens_;
  std::vector<TokenId> tokens_;

  State state_ = State::outside;
  std::int64_t rank_ = 0;           // smaller is more senior; fixed when the sequence is added
  int computed_ = 0;
  int published_blocks_ = 0;        // leading whole blocks that the prefix index has
  std::vector<BlockRef> blocks_;
  std::vector<TokenId> drafts_;
  BlockRef copy_source_;            // block to copy into blocks_[published_blocks_] before the next forward
  const Sequence* producer_ = nullptr;  // while waiting: a running sequence that computes what this one can use …
  int producer_tokens_ = 0;             // … when it has computed so many tokens
  int cached_tokens_ = 0;
  int preemptions_ = 0;
  bool has_run_ = false;
};

}  // namespace fixpoint::engine
