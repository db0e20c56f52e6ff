#pragma once

#include <cstdint>
#include <span>

namespace fixpoint::kernels {

/// One step's sequences as flat arrays, in the form attention reads them. Sequence `s` computes the tokens
/// `q_indptr[s] .. q_indptr[s+1]` of the step; they are the last tokens of a context whose keys and values lie in
/// the blocks `block_ids[block_indptr[s] .. block_indptr[s+1]]`, all full but the last, which holds
/// `last_block_len[s]` tokens (this step's included). A query at position p attends to positions 0..p.
/// Views: the arrays must outlive the call they are passed to.
struct PagedBatch {
  std::int32_t block_size = 0;                    ///< tokens in a block
  std::span<const std::int32_t> q_indptr;         ///< [num_seqs + 1]
  std::span<const std::int32_t> block_indptr;     ///< [num_seqs + 1]
  std::span<const std::int32_t> block_ids;        ///< [block_indptr[num_seqs]]
  std::span<const std::int32_t> last_block_len;   ///< [num_seqs], 1..block_size
  std::span<const std::int32_t> positions;        ///< [num_tokens], 0-based position in the sequence

  [[nodiscard]] std::int32_t num_seqs() const { return static_cast<std::int32_t>(last_block_len.size()); }
  [[nodiscard]] std::int32_t num_tokens() const { return static_cast<std::int32_t>(positions.size()); }
  /// Tokens in the context of sequence `s`, this step's included.
  [[nodiscard]] std::int32_t context_len(std::int32_t s) const {
    const auto i = static_cast<std::size_t>(s);
    return (block_indptr[i + 1] - block_indptr[i] - 1) * block_size + last_block_len[i];
  }
};

}  // namespace fixpoint::kernels
