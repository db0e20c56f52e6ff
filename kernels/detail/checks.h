#pragma once

#include <span>

#include "kernels/backend.h"

/// Preconditions of Backend's operations: each throws std::invalid_argument that names the operation and what is wrong.
/// Every backend calls them, so that a mistake is found on whichever one runs.
namespace fixpoint::kernels::checks {

void same_bytes(const char* operation, const Tensor& from, const Tensor& to);
void weight_parts(std::span<const Tensor> parts);
void kv_shape(const KvShape& shape);
void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out);
void norm(const char* operation, const Tensor& x, const Tensor& weight, const Tensor& out);
void same_matrix(const char* operation, const Tensor& a, const Tensor& b);
void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out);
void batch(const char* operation, const PagedBatch& batch, const KvShape& shape);
void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm, const Rope& rope,
                      const PagedBatch& batch, const KvShape& shape);
void attention(const Tensor& q, const PagedBatch& batch, const KvShape& shape, const Tensor& out);
void swiglu(const Tensor& gate_up, const Tensor& out);
void gather(const Tensor& x, std::span<const std::int32_t> rows, const Tensor& out);
void choose(const Tensor& logits, std::span<const RowChoice> choices, std::span<const std::int32_t> out);
void copy_blocks(const KvShape& shape, std::span<const BlockCopy> copies);

}  // namespace fixpoint::kernels::checks
