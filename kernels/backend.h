#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kv_type.h"
#include "kernels/paged_batch.h"
#include "kernels/row_choice.h"
#include "kernels/tensor.h"

namespace fixpoint::kernels {

/// A weight matrix [rows = out_features, cols = in_features] in the form its backend multiplies fastest. It may be a
/// vertical stack of several matrices of different types (fused q/k/v, gate/up).
class Weight {
 public:
  virtual ~Weight() = default;
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t cols() const { return cols_; }
  /// Bytes that one multiplication reads.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// What Backend::load_packed makes an equal weight of; empty where its backend has no packed form.
  [[nodiscard]] virtual std::span<const std::byte> packed() const { return {}; }

 protected:
  std::int64_t rows_ = 0, cols_ = 0, bytes_ = 0;
};

/// Which elements of a head are rotated together: (i, i + dim/2), as in the Hugging Face files, or (2i, 2i + 1), as in
/// GGUF files of architecture `llama`.
enum class RopePairing : std::uint8_t { half_split, adjacent };

/// Rotary embedding: the pair i at position p turns by p * inv_freq[i]; cos and sin are multiplied by `magnitude`
/// (YaRN's attention factor; 1 otherwise). Elements past 2 * inv_freq.size() of a head stay as they are.
struct Rope {
  RopePairing pairing = RopePairing::half_split;
  std::vector<float> inv_freq;
  float magnitude = 1.0F;
};

/// RMSNorm of each head of the queries and of the keys on its own (Qwen3); weights [head_dim].
struct HeadNorm {
  Tensor q, k;
  float eps = 0.0F;
};

/// Shape of one layer's keys and values. The layout inside a block belongs to the backend.
struct KvShape {
  std::int32_t num_blocks = 0;
  std::int32_t block_size = 16;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  KvType type = KvType::f16;
};

/// One layer's key and value storage.
struct KvLayer {
  KvShape shape;
  Buffer storage;
};

/// Copy of a whole KV block (copy on write), in one layer.
struct BlockCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// The host arrays that one step's operations are given: its tokens, where they belong, and the rows that go on to the
/// logits.
struct StepArrays {
  std::span<const std::int32_t> tokens;
  PagedBatch batch;
  std::span<const std::int32_t> rows;
};

/// A device's own memory, in bytes.
struct MemoryInfo {
  std::size_t free = 0;
  std::size_t total = 0;
};

/// Work and traffic of the operations since construction: what was asked for, not what the hardware did.
struct OpCounters {
  std::uint64_t flops = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;  ///< keys and values of a context count once per sequence and call
};

/// Arithmetic on memory. Activations are F32, row-major. One thread calls at a time; a call may return before its
/// work is done, `synchronize` waits for all of it. Preconditions (shapes, ranges) are the caller's: a violation throws
/// std::invalid_argument. Device failures throw std::runtime_error.
///
/// Exactness: each output element is computed with one order of reduction that depends on that element's own inputs
/// only. A row's result is the same bits whatever other rows, sequences or batch sizes share the call.
class Backend {
 public:
  virtual ~Backend() = default;

  /// For people: "cpu avx512_bf16, 2 threads".
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual OpCounters counters() const = 0;

  /// Memory the operations can use, 64-byte aligned.
  [[nodiscard]] virtual Buffer allocate(std::size_t bytes) = 0;
  /// Memory of the host that `download` fills fastest: page-locked where there is a device. 64-byte aligned.
  [[nodiscard]] virtual Buffer allocate_host(std::size_t bytes) { return allocate(bytes); }
  /// Host to backend memory, and back. `from` and `to` are contiguous and of equal bytes.
  virtual void upload(const Tensor& from_host, const Tensor& to) = 0;
  virtual void download(const Tensor& from, const Tensor& to_host) = 0;
  virtual void synchronize() = 0;
  /// Unset where the operations work on the host's memory.
  [[nodiscard]] virtual std::optional<MemoryInfo> memory() const { return std::nullopt; }

  /// Runs `body`, which calls one step's operations with these arrays (the same spans). A backend may move the arrays once
  /// for all of them, or record the operations and repeat the recording, without `body`, for a step like it: so `body`
  /// does nothing else, allocates nothing, and its buffers have padded_rows(tokens) rows.
  virtual void run_step(const StepArrays& /*arrays*/, const std::function<void()>& body) { body(); }
  [[nodiscard]] virtual std::int64_t padded_rows(std::int64_t tokens) const { return tokens; }

  /// Stacks host matrices of equal cols and makes a Weight of them. The host memory (usually a mapped file) must outlive
  /// the Weight: a backend that has nothing to repack reads it in place.
  [[nodiscard]] virtual std::unique_ptr<Weight> load_weight(std::span<const Tensor> parts) = 0;
  /// Names the form that load_weight brings matrices into, where its bytes may be kept for load_packed: equal names, equal
  /// bytes. Empty where there is nothing to keep.
  [[nodiscard]] virtual std::string packed_form() const { return {}; }
  /// The weight that load_weight made of such parts when its bytes were kept, without looking at the parts' data. `packed`
  /// must outlive it and is read in place. Null where `packed` has another size than such a weight, or is not 64-byte aligned.
  [[nodiscard]] virtual std::unique_ptr<Weight> load_packed(std::span<const Tensor> /*parts*/, std::span<const std::byte> /*packed*/) {
    return nullptr;
  }
  /// Every backend stores every type. Throws std::invalid_argument for a head_dim beyond the backend's limit.
  [[nodiscard]] virtual KvLayer allocate_kv(const KvShape& shape) = 0;
  /// Bytes that a layer of this shape takes, the backend's padding included; proportional to the number of blocks.
  /// allocate_kv takes no more but for whole pages.
  [[nodiscard]] virtual std::size_t kv_bytes(const KvShape& shape) const = 0;

  /// out[i, :] = table[tokens[i], :]                                     out [n, cols]
  virtual void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out) = 0;
  /// out = x / sqrt(mean(x^2) + eps) * weight, per row                   x, out [n, d], weight [d]
  virtual void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) = 0;
  /// residual += delta; out = rms_norm(residual)                         all [n, d]
  virtual void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps,
                            const Tensor& out) = 0;
  /// x += delta                                                          [n, d]
  virtual void add(const Tensor& x, const Tensor& delta) = 0;
  /// out = x * w^T (+ bias)                                              x [n, cols], out [n, rows], bias [rows] or null
  virtual void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out) = 0;
  /// The heads of q and k are normalised, unless `norm` is null, and then rotated, both in place; k and v are written
  /// into their blocks                                             q [n, heads, head_dim], k, v [n, kv_heads, head_dim]
  virtual void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm,
                                const Rope& rope, const PagedBatch& batch, KvLayer& layer) = 0;
  /// Causal attention over the blocks; head h reads KV head h / (heads / kv_heads); scores are scaled by `scale`
  ///                                                                     q, out [n, heads, head_dim]
  virtual void attention(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale,
                         const Tensor& out) = 0;
  /// out = silu(gate) * up                                               gate_up [n, 2 f] (gate first), out [n, f]
  virtual void swiglu(const Tensor& gate_up, const Tensor& out) = 0;
  /// out[i, :] = x[rows[i], :]
  virtual void gather(const Tensor& x, std::span<const std::int32_t> rows, const Tensor& out) = 0;
  virtual void copy_blocks(KvLayer& layer, std::span<const BlockCopy> copies) = 0;
  /// Threads that the operations and `share` use, the caller counted.
  [[nodiscard]] virtual int num_threads() const { return 1; }
  /// Calls body(task, thread) for every task in 0..tasks, on the threads that the operations run on, and returns when all are done.
  /// For the caller's own work on the host between operations; the body must not throw.
  virtual void share(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
  }
  /// Whether the backend has `choose`. Those whose logits are the host's leave choosing to the caller: there is no copy to save.
  [[nodiscard]] virtual bool chooses_tokens() const { return false; }
  /// out[i] is the token of choices[i]: to the bit what kernels/row_choice.h says; below 0 where its row holds NaN or +inf, or
  /// nothing above -inf. `out` is memory of allocate_host and filled when `synchronize` returns.              logits [n, V]
  virtual void choose(const Tensor& /*logits*/, std::span<const RowChoice> /*choices*/, std::span<std::int32_t> /*out*/) {
    throw std::logic_error("the backend chooses no tokens");
  }
};

/// Instruction sets of the CPU backend; `best` is what this machine has.
enum class CpuIsa : std::uint8_t { best, portable, avx2, avx512 };

struct CpuOptions {
  int num_threads = 0;  ///< 0: as many as this process may run on
  CpuIsa isa = CpuIsa::best;
};

/// Throws std::runtime_error when the machine lacks the instructions that were asked for.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

/// Plain loops that say what each operation means; weights stay as they are and dot products accumulate in double.
/// For tests.
[[nodiscard]] std::unique_ptr<Backend> make_reference_backend();

}  // namespace fixpoint::kernels
