#include "kernels/detail/checks.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace fixpoint::kernels::checks {
namespace {

void require(bool holds, const char* operation, const char* what) {
  if (!holds) throw std::invalid_argument(std::string(operation) + ": " + what);
}

void f32(const char* operation, const Tensor& t) { require(t.dtype == DType::f32, operation, "expects F32 tensors"); }

void vector_of(const char* operation, const Tensor& t, std::int64_t n) {
  f32(operation, t);
  require(t.shape.elements() == n, operation, "a weight or bias vector has another length");
}

void heads_of(const char* operation, const Tensor& t, std::int64_t n, std::int64_t heads, std::int64_t head_dim) {
  f32(operation, t);
  require(t.shape == Shape{n, heads, head_dim}, operation, "expects [tokens, heads, head_dim]");
}

}  // namespace

void same_bytes(const char* operation, const Tensor& from, const Tensor& to) {
  require(from.contiguous() && to.contiguous(), operation, "expects contiguous tensors");
  require(from.bytes() == to.bytes(), operation, "the tensors differ in bytes");
}

void weight_parts(std::span<const Tensor> parts) {
  require(!parts.empty(), "load_weight", "no parts");
  for (const Tensor& part : parts) {
    require(part.shape.rank() == 2 && part.contiguous(), "load_weight", "expects contiguous matrices");
    require(part.shape[0] > 0 && part.shape[1] > 0, "load_weight", "empty matrix");
    require(part.shape[1] == parts[0].shape[1], "load_weight", "parts differ in columns");
    require(part.shape[1] % traits(part.dtype).block_elements == 0, "load_weight",
            "columns are no whole number of blocks");
  }
}

void kv_shape(const KvShape& shape) {
  require(shape.num_blocks >= 0 && shape.block_size > 0 && shape.num_kv_heads > 0 && shape.head_dim > 0,
          "allocate_kv", "empty shape");
}

void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out) {
  f32("embed", out);
  require(out.rows() == static_cast<std::int64_t>(tokens.size()) && out.row_elements() == table.cols(), "embed",
          "out is not [tokens, cols]");
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < table.rows(), "embed", "token id out of range");
  }
}

void norm(const char* operation, const Tensor& x, const Tensor& weight, const Tensor& out) {
  same_matrix(operation, x, out);
  vector_of(operation, weight, x.row_elements());
}

void same_matrix(const char* operation, const Tensor& a, const Tensor& b) {
  f32(operation, a);
  f32(operation, b);
  require(a.rows() == b.rows() && a.row_elements() == b.row_elements(), operation, "the tensors differ in shape");
}

void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out) {
  f32("matmul", x);
  f32("matmul", out);
  require(x.row_elements() == w.cols(), "matmul", "x has another number of columns than the weight");
  require(out.rows() == x.rows() && out.row_elements() == w.rows(), "matmul", "out is not [n, rows]");
  if (bias != nullptr) vector_of("matmul", *bias, w.rows());
}

void batch(const char* operation, const PagedBatch& b, const KvShape& shape) {
  const auto seqs = static_cast<std::size_t>(b.num_seqs());
  require(b.block_size == shape.block_size, operation, "batch and KV differ in block size");
  require(b.q_indptr.size() == seqs + 1 && b.block_indptr.size() == seqs + 1, operation,
          "q_indptr and block_indptr are not [num_seqs + 1]");
  require(b.q_indptr[0] == 0 && b.q_indptr[seqs] == b.num_tokens(), operation, "q_indptr does not cover the tokens");
  require(b.block_indptr[0] == 0 && b.block_indptr[seqs] == static_cast<std::int32_t>(b.block_ids.size()),
          operation, "block_indptr does not cover block_ids");
  // Tens of thousands of ids, twice a layer: no branches, so that the loop is vectorised. Below 0 is above all as unsigned.
  const auto end = static_cast<std::uint32_t>(shape.num_blocks);
  std::uint32_t outside = 0;
  for (const std::int32_t id : b.block_ids) outside |= static_cast<std::uint32_t>(id) >= end ? 1U : 0U;
  require(outside == 0, operation, "block id out of range");
  for (std::size_t s = 0; s < seqs; ++s) {
    require(b.q_indptr[s] <= b.q_indptr[s + 1] && b.block_indptr[s] < b.block_indptr[s + 1], operation,
            "a sequence without blocks, or with fewer than no tokens");
    require(b.last_block_len[s] > 0 && b.last_block_len[s] <= b.block_size, operation, "last_block_len out of range");
    const std::int32_t context = b.context_len(static_cast<std::int32_t>(s));
    for (auto t = static_cast<std::size_t>(b.q_indptr[s]); t < static_cast<std::size_t>(b.q_indptr[s + 1]); ++t) {
      require(b.positions[t] >= 0 && b.positions[t] < context, operation, "position outside the context");
    }
  }
}

void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm, const Rope& rope,
                      const PagedBatch& b, const KvShape& shape) {
  constexpr const char* kOperation = "rotate_and_store";
  batch(kOperation, b, shape);
  heads_of(kOperation, q, b.num_tokens(), q.shape[1], shape.head_dim);
  heads_of(kOperation, k, b.num_tokens(), shape.num_kv_heads, shape.head_dim);
  heads_of(kOperation, v, b.num_tokens(), shape.num_kv_heads, shape.head_dim);
  if (norm != nullptr) {
    vector_of(kOperation, norm->q, shape.head_dim);
    vector_of(kOperation, norm->k, shape.head_dim);
  }
  require(static_cast<std::int64_t>(2 * rope.inv_freq.size()) <= shape.head_dim, kOperation,
          "more frequencies than pairs");
}

void attention(const Tensor& q, const PagedBatch& b, const KvShape& shape, const Tensor& out) {
  batch("attention", b, shape);
  require(q.shape.rank() == 3 && q.shape[1] > 0 && q.shape[1] % shape.num_kv_heads == 0, "attention",
          "heads are no multiple of the KV heads");
  heads_of("attention", q, b.num_tokens(), q.shape[1], shape.head_dim);
  heads_of("attention", out, b.num_tokens(), q.shape[1], shape.head_dim);
}

void swiglu(const Tensor& gate_up, const Tensor& out) {
  f32("swiglu", gate_up);
  f32("swiglu", out);
  require(gate_up.rows() == out.rows() && gate_up.row_elements() == 2 * out.row_elements(), "swiglu",
          "gate_up is not [n, 2 f] for out [n, f]");
}

void gather(const Tensor& x, std::span<const std::int32_t> rows, const Tensor& out) {
  f32("gather", x);
  f32("gather", out);
  require(out.rows() == static_cast<std::int64_t>(rows.size()) && x.row_elements() == out.row_elements(), "gather",
          "out is not [rows, cols]");
  for (const std::int32_t row : rows) require(row >= 0 && row < x.rows(), "gather", "row out of range");
}

void choose(const Tensor& logits, std::span<const RowChoice> choices, std::span<const std::int32_t> out) {
  f32("choose", logits);
  require(out.size() == choices.size(), "choose", "out is not [choices]");
  for (const RowChoice& choice : choices) {
    require(choice.row >= 0 && choice.row < logits.rows(), "choose", "row out of range");
    require(choice.vocab_size > 0 && choice.vocab_size <= logits.row_elements(), "choose", "vocabulary wider than a row");
  }
}

void copy_blocks(const KvShape& shape, std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    require(copy.from >= 0 && copy.from < shape.num_blocks && copy.to >= 0 && copy.to < shape.num_blocks,
            "copy_blocks", "block id out of range");
  }
}

}  // namespace fixpoint::kernels::checks
