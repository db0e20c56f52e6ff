#include "engine/prefix_cache.h"

#include <algorithm>
#include <stdexcept>

namespace fixpoint::engine {
namespace {

std::size_t at(BlockId id) { return static_cast<std::size_t>(id); }

bool is_prefix(std::span<const TokenId> prefix, std::span<const TokenId> of) {
  return prefix.size() <= of.size() && std::equal(prefix.begin(), prefix.end(), of.begin());
}

}  // namespace

int common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t n = std::min(a.size(), b.size());
  return static_cast<int>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first - a.begin());
}

void release_tail_first(std::vector<BlockRef>& blocks) noexcept {
  while (!blocks.empty()) blocks.pop_back();
}

void PrefixMatch::drop_partial() noexcept {
  partial.reset();
  partial_tokens = 0;
}

void PrefixMatch::release() noexcept {
  drop_partial();
  release_tail_first(blocks);
}

PrefixCache::PrefixCache(BlockPool& pool, int block_size)
    : pool_(&pool), block_size_(block_size), nodes_(at(pool.total())), tokens_(at(pool.total()) * at(block_size)) {}

std::span<const TokenId> PrefixCache::tokens_of(BlockId id) const {
  return {tokens_.data() + at(id) * at(block_size_), at(nodes_[at(id)].num_tokens)};
}

std::vector<BlockId>::iterator PrefixCache::lower_bound(std::vector<BlockId>& children,
                                                        std::span<const TokenId> tokens) const {
  return std::lower_bound(children.begin(), children.end(), tokens, [this](BlockId id, std::span<const TokenId> key) {
    const auto have = tokens_of(id);
    return std::lexicographical_compare(have.begin(), have.end(), key.begin(), key.end());
  });
}

/// In lexicographic order the longest common prefix is with a neighbour of the place where the tokens belong.
PrefixCache::Nearest PrefixCache::nearest(std::vector<BlockId>& children, std::span<const TokenId> tokens) const {
  Nearest best;
  const auto place = lower_bound(children, tokens);
  if (place != children.end()) best = {*place, common_prefix(tokens_of(*place), tokens)};
  if (place != children.begin()) {
    const BlockId before = *(place - 1);
    const int common = common_prefix(tokens_of(before), tokens);
    if (common > best.common) best = {before, common};
  }
  return best;
}

std::vector<BlockId>& PrefixCache::siblings(const Node& node) {
  return node.parent ? nodes_[at(*node.parent)].children : node.tree->children;
}

PrefixMatch PrefixCache::match(std::string_view tenant, std::span<const TokenId> tokens) {
  PrefixMatch found;
  const auto tree = trees_.find(tenant);
  if (tree == trees_.end()) return found;
  std::vector<BlockId>* children = &tree->second.children;
  while (!tokens.empty()) {
    const auto want = tokens.first(std::min(tokens.size(), at(block_size_)));
    const Nearest child = nearest(*children, want);
    if (child.common == 0) break;
    if (child.common < block_size_) {
      found.partial = pool_->share(child.id);
      found.partial_tokens = child.common;
      break;
    }
    found.blocks.push_back(pool_->share(child.id));
    children = &nodes_[at(child.id)].children;
    tokens = tokens.subspan(at(block_size_));
  }
  return found;
}

PrefixCache::Tree& PrefixCache::tree_of(std::string_view tenant) {
  const auto found = trees_.find(tenant);
  if (found != trees_.end()) return found->second;
  return trees_.emplace(tenant, Tree{std::string(tenant), {}}).first->second;
}

BlockRef PrefixCache::insert(std::string_view tenant, std::optional<BlockId> parent, std::span<const TokenId> tokens,
                             BlockRef block) {
  if (tokens.empty() || tokens.size() > at(block_size_)) throw std::logic_error("prefix cache: a node holds 1..block_size tokens");
  if (parent && nodes_[at(*parent)].num_tokens != block_size_) throw std::logic_error("prefix cache: the parent is not in the index");
  Tree& tree = parent ? *nodes_[at(*parent)].tree : tree_of(tenant);
  auto& children = parent ? nodes_[at(*parent)].children : tree.children;
  const auto place = lower_bound(children, tokens);
  if (place != children.end() && is_prefix(tokens, tokens_of(*place))) {
    const bool whole = tokens.size() == at(block_size_);
    return whole && *place != block.id() ? pool_->share(*place) : std::move(block);
  }
  if (place != children.begin()) {
    // A partial sibling that these tokens continue is of no use any more: this block itself, stated earlier, or another's.
    const BlockId before = *(place - 1);
    if (is_prefix(tokens_of(before), tokens)) remove(before);
  }
  // `remove` may have ended the tree with its last child.
  add(parent ? *nodes_[at(*parent)].tree : tree_of(tenant), parent, tokens, block.id());
  return block;
}

void PrefixCache::add(Tree& tree, std::optional<BlockId> parent, std::span<const TokenId> tokens, BlockId id) {
  Node& node = nodes_[at(id)];
  if (node.num_tokens != 0) throw std::logic_error("prefix cache: block " + std::to_string(id) + " is in the index already");
  auto& children = parent ? nodes_[at(*parent)].children : tree.children;
  children.insert(lower_bound(children, tokens), id);
  node.tree = &tree;
  node.parent = parent;
  node.num_tokens = static_cast<int>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(at(id) * at(block_size_)));
  pool_->set_indexed(id, true);
  ++size_;
}

void PrefixCache::remove(BlockId id) {
  Node& node = nodes_[at(id)];
  if (!node.children.empty()) throw std::logic_error("prefix cache: block " + std::to_string(id) + " still has children");
  auto& children = siblings(node);
  children.erase(lower_bound(children, tokens_of(id)));
  if (!node.parent && node.tree->children.empty()) trees_.erase(trees_.find(node.tree->tenant));
  node = Node{};
  --size_;
  pool_->set_indexed(id, false);
}

bool PrefixCache::evict_oldest() {
  const auto oldest = pool_->oldest_cached();
  if (!oldest) return false;
  remove(*oldest);
  ++evictions_;
  return true;
}

bool PrefixCache::forget(BlockId id) {
  const Node& node = nodes_[at(id)];
  if (node.num_tokens == 0 || !node.children.empty()) return false;
  remove(id);
  return true;
}

int PrefixCache::check_children(const Tree& tree, std::optional<BlockId> parent, const std::vector<BlockId>& children) const {
  int count = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const BlockId id = children[i];
    const Node& node = nodes_[at(id)];
    const auto fail = [id](const char* what) {
      throw std::logic_error("prefix cache: block " + std::to_string(id) + " " + what);
    };
    if (node.tree != &tree || node.parent != parent) fail("is linked to the wrong parent");
    if (node.num_tokens < 1 || node.num_tokens > block_size_) fail("has a wrong number of tokens");
    if (!pool_->indexed(id)) fail("is not marked as indexed");
    if (node.num_tokens < block_size_ && !node.children.empty()) fail("is partial and has children");
    if (pool_->refs(id) > 0 && parent && node.num_tokens == block_size_ && pool_->refs(*parent) == 0) fail("is held without its parent");
    if (i > 0 && is_prefix(tokens_of(children[i - 1]), tokens_of(id))) fail("continues its sibling");
    if (i > 0 && !std::lexicographical_compare(tokens_of(children[i - 1]).begin(), tokens_of(children[i - 1]).end(),
                                               tokens_of(id).begin(), tokens_of(id).end())) {
      fail("is out of order");
    }
    count += 1 + check_children(tree, id, node.children);
  }
  return count;
}

void PrefixCache::check() const {
  int count = 0;
  for (const auto& [tenant, tree] : trees_) {
    if (tree.children.empty()) throw std::logic_error("prefix cache: an empty tree was kept");
    count += check_children(tree, std::nullopt, tree.children);
  }
  int indexed = 0;
  for (BlockId id = 0; id < pool_->total(); ++id) indexed += pool_->indexed(id) ? 1 : 0;
  if (count != size_ || indexed != size_) throw std::logic_error("prefix cache: the tree and the pool disagree on what is indexed");
  const auto oldest = pool_->oldest_cached();
  if (oldest && !nodes_[at(*oldest)].children.empty()) throw std::logic_error("prefix cache: the oldest cached block is not a leaf");
}

}  // namespace fixpoint::engine
