#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {

/// A step's sequences with the arrays that PagedBatch views.
struct Step {
  std::int32_t block_size;
  std::vector<std::int32_t> q_indptr{0}, block_indptr{0}, block_ids, last_block_len, positions;

  /// The last `tokens` tokens of a context of `context` tokens in `blocks`.
  void add(std::int32_t context, std::int32_t tokens, const std::vector<std::int32_t>& blocks) {
    const std::int32_t used = (context + block_size - 1) / block_size;
    block_ids.insert(block_ids.end(), blocks.begin(), blocks.begin() + used);
    block_indptr.push_back(static_cast<std::int32_t>(block_ids.size()));
    last_block_len.push_back(context - (used - 1) * block_size);
    for (std::int32_t p = context - tokens; p < context; ++p) positions.push_back(p);
    q_indptr.push_back(static_cast<std::int32_t>(positions.size()));
  }
  [[nodiscard]] PagedBatch batch() const {
    return {block_size, q_indptr, block_indptr, block_ids, last_block_len, positions};
  }
};

struct Heads {
  std::int32_t kv, group, dim;
  [[nodiscard]] std::int32_t query() const { return kv * group; }
};

/// One sequence's numbers: what its tokens ask for and hold.
struct Sequence {
  std::int32_t length;
  Floats q, k, v;
  std::vector<std::int32_t> blocks;
};

/// Attention of whole sequences on a backend.
class AttentionFixture : public BackendTest {
 protected:
  Sequence sequence(Random& random, const Heads& h, std::int32_t length) {
    return {length, random.normal(length * h.query() * h.dim), random.normal(length * h.kv * h.dim),
            random.normal(length * h.kv * h.dim), {}};
  }

  // Tokens first..last of each sequence in one step; returns the attention of those tokens.
  Floats step(Backend& backend, KvLayer& kv, const Heads& h, const std::vector<Sequence>& sequences,
              const std::vector<std::pair<std::int32_t, std::int32_t>>& ranges) {
    Step s{kv.shape.block_size};
    Floats q;
    Floats k;
    Floats v;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto [first, last] = ranges[i];
      if (last == 0) continue;
      s.add(last, last - first, sequences[i].blocks);
      append(q, sequences[i].q, h.query() * h.dim, first, last);
      append(k, sequences[i].k, h.kv * h.dim, first, last);
      append(v, sequences[i].v, h.kv * h.dim, first, last);
    }
    const auto n = static_cast<std::int64_t>(s.positions.size());
    Floats out = poison(n * h.query() * h.dim);
    backend.rotate_and_store(cube(q, n, h.query(), h.dim), cube(k, n, h.kv, h.dim), cube(v, n, h.kv, h.dim), nullptr,
                             {}, s.batch(), kv);
    backend.attention(cube(q, n, h.query(), h.dim), kv, s.batch(), 1.0F / std::sqrt(static_cast<float>(h.dim)),
                      cube(out, n, h.query(), h.dim));
    return out;
  }

  // Tokens first..last of each sequence are stored, not attended.
  void store(Backend& backend, KvLayer& kv, const Heads& h, const std::vector<Sequence>& sequences,
             const std::vector<std::pair<std::int32_t, std::int32_t>>& ranges) {
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto [first, last] = ranges[i];
      Step s{kv.shape.block_size};
      s.add(last, last - first, sequences[i].blocks);
      Floats none;
      Floats k;
      Floats v;
      append(k, sequences[i].k, h.kv * h.dim, first, last);
      append(v, sequences[i].v, h.kv * h.dim, first, last);
      const std::int64_t n = last - first;
      backend.rotate_and_store(cube(none, n, 0, h.dim), cube(k, n, h.kv, h.dim), cube(v, n, h.kv, h.dim), nullptr, {},
                               s.batch(), kv);
    }
  }

  static void append(Floats& to, const Floats& from, std::int64_t width, std::int32_t first, std::int32_t last) {
    to.insert(to.end(), from.begin() + first * width, from.begin() + last * width);
  }

  static std::vector<std::int32_t> lengths(const std::vector<Sequence>& all) {
    std::vector<std::int32_t> out;
    for (const Sequence& s : all) out.push_back(s.length);
    return out;
  }

  static std::vector<std::int32_t> shuffled_blocks(Random& random, std::int32_t count) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::shuffle(ids, random.engine());
    return ids;
  }
};

}  // namespace fixpoint::kernels
