#include "engine/block_pool.h"

#include <cassert>
#include <stdexcept>
#include <string>

namespace fixpoint::engine {

BlockPool::BlockPool(int num_blocks) {
  if (num_blocks < 1) throw std::invalid_argument("block pool: num_blocks must be at least 1");
  blocks_.resize(index(num_blocks) + num_sentinels);
  for (const BlockId list : {free_list(), cached_list()}) {
    blocks_[index(list)].prev = list;
    blocks_[index(list)].next = list;
  }
  for (BlockId id = 0; id < num_blocks; ++id) link_back(free_list(), id);
  free_count_ = num_blocks;
}

std::optional<BlockRef> BlockPool::allocate() {
  if (free_count_ == 0) return std::nullopt;
  const BlockId id = blocks_[index(free_list())].next;
  unlink(id);
  --free_count_;
  ++held_count_;
  blocks_[index(id)].refs = 1;
  return BlockRef(this, id);
}

BlockRef BlockPool::share(BlockId id) {
  Block& block = blocks_[index(id)];
  if (block.refs == 0) {
    if (!block.indexed) throw std::logic_error("block pool: share of free block " + std::to_string(id));
    unlink(id);
    --cached_count_;
    ++held_count_;
  }
  ++block.refs;
  return BlockRef(this, id);
}

void BlockPool::set_indexed(BlockId id, bool indexed) {
  Block& block = blocks_[index(id)];
  if (block.indexed == indexed) return;
  if (block.refs == 0) {
    if (indexed) throw std::logic_error("block pool: a free block cannot be indexed: " + std::to_string(id));
    unlink(id);
    --cached_count_;
    link_front(free_list(), id);
    ++free_count_;
  }
  block.indexed = indexed;
}

std::optional<BlockId> BlockPool::oldest_cached() const {
  if (cached_count_ == 0) return std::nullopt;
  return blocks_[index(cached_list())].next;
}

void BlockPool::release(BlockId id) noexcept {
  Block& block = blocks_[index(id)];
  assert(block.refs > 0);
  if (--block.refs > 0) return;
  --held_count_;
  if (block.indexed) {
    ++cached_count_;
    link_back(cached_list(), id);
  } else {
    ++free_count_;
    link_front(free_list(), id);
  }
}

void BlockPool::unlink(BlockId id) {
  const Block& block = blocks_[index(id)];
  blocks_[index(block.prev)].next = block.next;
  blocks_[index(block.next)].prev = block.prev;
}

void BlockPool::link_back(BlockId list, BlockId id) {
  Block& sentinel = blocks_[index(list)];
  Block& block = blocks_[index(id)];
  block.prev = sentinel.prev;
  block.next = list;
  blocks_[index(sentinel.prev)].next = id;
  sentinel.prev = id;
}

void BlockPool::link_front(BlockId list, BlockId id) {
  const BlockId first = blocks_[index(list)].next;
  blocks_[index(id)].prev = list;
  blocks_[index(id)].next = first;
  blocks_[index(first)].prev = id;
  blocks_[index(list)].next = id;
}

int BlockPool::check_list(BlockId list, bool indexed) const {
  int length = 0;
  BlockId before = list;
  for (BlockId id = blocks_[index(list)].next; id != list; id = blocks_[index(id)].next) {
    const Block& block = blocks_[index(id)];
    if (block.refs != 0 || block.indexed != indexed || block.prev != before || ++length > total()) {
      throw std::logic_error("block pool: block " + std::to_string(id) + " does not belong where it is listed");
    }
    before = id;
  }
  return length;
}

void BlockPool::check() const {
  int held = 0;
  for (BlockId id = 0; id < total(); ++id) {
    if (blocks_[index(id)].refs < 0) throw std::logic_error("block pool: negative count of block " + std::to_string(id));
    if (blocks_[index(id)].refs > 0) ++held;
  }
  if (check_list(free_list(), false) != free_count_ || check_list(cached_list(), true) != cached_count_ ||
      held != held_count_ || !balanced()) {
    throw std::logic_error("block pool: free + cached + held != total");
  }
}

}  // namespace fixpoint::engine
