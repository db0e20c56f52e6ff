#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/block_pool.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine {

/// What the index holds of a token sequence. Destroying it gives the blocks back tail first, so that the order of the
/// cached blocks always has children before their parents.
struct PrefixMatch {
  std::vector<BlockRef> blocks;  ///< whole blocks, in order
  BlockRef partial;              ///< a block whose first `partial_tokens` tokens continue the match; copy before writing
  int partial_tokens = 0;

  PrefixMatch() = default;
  PrefixMatch(PrefixMatch&&) = default;
  PrefixMatch& operator=(PrefixMatch&&) = default;
  ~PrefixMatch() { release(); }
  void release() noexcept;
  void drop_partial() noexcept;
  [[nodiscard]] int tokens(int block_size) const { return static_cast<int>(blocks.size()) * block_size + partial_tokens; }
};

/// Gives blocks back tail first.
void release_tail_first(std::vector<BlockRef>& blocks) noexcept;

/// How many leading tokens both have in common.
[[nodiscard]] int common_prefix(std::span<const TokenId> a, std::span<const TokenId> b);

/// A radix index over blocks of tokens, one tree per tenant. A node is one block; its tokens are stored and compared
/// one by one, so a hit never rests on a hash. Children are kept in the order of their tokens, which makes the longest
/// common prefix a binary search. A node with less than a block of tokens is a leaf; none is a prefix of its sibling.
///
/// Whoever holds a node's block through a sequence or a match holds its ancestors' too; with tail-first release this
/// makes the oldest cached block a leaf. Not synchronised.
class PrefixCache {
 public:
  PrefixCache(BlockPool& pool, int block_size);

  /// The longest prefix of `tokens` in the tenant's tree. Cost: O(tokens * log(children)).
  [[nodiscard]] PrefixMatch match(std::string_view tenant, std::span<const TokenId> tokens);

  /// States that `block` holds `tokens` (1..block_size) after the whole block `parent` (nothing: at the start). The
  /// parent must be in the index. Gives back the block to go on with: where the same whole block is there already,
  /// that one. A partial block may be stated again later with more tokens.
  [[nodiscard]] BlockRef insert(std::string_view tenant, std::optional<BlockId> parent, std::span<const TokenId> tokens,
                                BlockRef block);

  /// Takes the oldest cached block out, which frees it. False when nothing is cached.
  bool evict_oldest();

  /// Takes a block out whoever holds it, so that nobody finds it any more. False when it has children or is not in.
  bool forget(BlockId id);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] std::uint64_t evictions() const { return evictions_; }
  [[nodiscard]] std::size_t num_tenants() const { return trees_.size(); }

  /// Every structural promise above; throws std::logic_error. For tests.
  void check() const;

 private:
  struct Tree {
    std::string tenant;
    std::vector<BlockId> children;
  };
  struct Node {  // of the block with the same index
    Tree* tree = nullptr;
    std::optional<BlockId> parent;
    int num_tokens = 0;
    std::vector<BlockId> children;  // in the order of their tokens
  };
  struct Nearest {
    BlockId id = 0;
    int common = 0;  // leading tokens in common
  };

  [[nodiscard]] std::span<const TokenId> tokens_of(BlockId id) const;
  [[nodiscard]] std::vector<BlockId>::iterator lower_bound(std::vector<BlockId>& children,
                                                           std::span<const TokenId> tokens) const;
  [[nodiscard]] Nearest nearest(std::vector<BlockId>& children, std::span<const TokenId> tokens) const;
  [[nodiscard]] std::vector<BlockId>& siblings(const Node& node);
  Tree& tree_of(std::string_view tenant);
  void add(Tree& tree, std::optional<BlockId> parent, std::span<const TokenId> tokens, BlockId id);
  void remove(BlockId id);
  int check_children(const Tree& tree, std::optional<BlockId> parent, const std::vector<BlockId>& children) const;

  BlockPool* pool_;
  int block_size_;
  std::map<std::string, Tree, std::less<>> trees_;
  std::vector<Node> nodes_;      // [num_blocks]
  std::vector<TokenId> tokens_;  // [num_blocks, block_size]
  int size_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace fixpoint::engine
