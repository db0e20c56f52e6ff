#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

#include "kernels/backend.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/rope_table.h"
#include "kernels/detail/checks.h"

namespace fixpoint::kernels {
namespace {

using cpu::KernelTable;
using cpu::KvLayout;

// Work that is over sooner than a second thread could join.
constexpr std::int64_t kElementsWorthSharing = 16384;
constexpr std::size_t kLargeKv = std::size_t{32} << 20U;

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& table, std::string isa, int num_threads)
      : table_(table), isa_(std::move(isa)), team_(num_threads), products_(table_, team_), attention_(table_, team_) {}

  std::string name() const override { return "cpu " + isa_ + ", " + std::to_string(team_.size()) + " threads"; }
  OpCounters counters() const override { return counters_; }
  void synchronize() override {}
  int num_threads() const override { return team_.size(); }
  void share(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body) override { team_.run(tasks, body); }

  Buffer allocate(std::size_t bytes) override {
    if (bytes >= std::size_t{1} << 20U) return cpu::allocate_huge(bytes);
    constexpr std::align_val_t kAlignment{64};
    return {::operator new(std::max<std::size_t>(bytes, 1), kAlignment), bytes,
            [](void* data, std::size_t, void*) { ::operator delete(data, kAlignment); }, nullptr};
  }

  void upload(const Tensor& from, const Tensor& to) override { copy("upload", from, to); }
  void download(const Tensor& from, const Tensor& to) override { copy("download", from, to); }

  void run_step(const StepArrays& /*arrays*/, const std::function<void()>& body) override {
    const cpu::AttentionStep step(attention_);
    body();
  }

  std::unique_ptr<Weight> load_weight(std::span<const Tensor> parts) override {
    checks::weight_parts(parts);
    return std::make_unique<cpu::PackedWeight>(parts, table_.bf16_pairs, arena_, team_);
  }
  // Instruction sets share the panels, but for pairs of BF16.
  std::string packed_form() const override { return std::string(cpu::kPanelForm) + (table_.bf16_pairs ? "-bf16pairs" : ""); }
  std::unique_ptr<Weight> load_packed(std::span<const Tensor> parts, std::span<const std::byte> packed) override {
    checks::weight_parts(parts);
    const bool aligned = reinterpret_cast<std::uintptr_t>(packed.data()) % 64 == 0;
    if (!aligned || packed.size() != static_cast<std::size_t>(cpu::PackedWeight::packed_bytes(parts))) return nullptr;
    return std::make_unique<cpu::PackedWeight>(parts, table_.bf16_pairs, packed.data());
  }

  KvLayer allocate_kv(const KvShape& shape) override {
    checks::kv_shape(shape);
    if (is_quantised(shape.type) && shape.head_dim > cpu::kLongestQuantisedHead) {
      throw std::invalid_argument("allocate_kv: head_dim is above " + std::to_string(cpu::kLongestQuantisedHead));
    }
    // Zeroed: padding must not hold a NaN. In a small budget a large page of each layer would be full of nothing after the
    // first token: 48 MB of 24 layers.
    const std::size_t bytes = kv_bytes(shape);
    return {shape, bytes < kLargeKv ? cpu::allocate_small(bytes) : cpu::allocate_huge(bytes)};
  }
  std::size_t kv_bytes(const KvShape& shape) const override {
    return static_cast<std::size_t>(shape.num_blocks * KvLayout(shape).block_bytes());
  }

  void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out) override {
    checks::embed(table, tokens, out);
    const cpu::PackedWeight& w = packed(table);
    by_rows(out, [&](std::int64_t i) { w.unpack_row(tokens[static_cast<std::size_t>(i)], out.row(i)); });
  }

  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    checks::norm("rms_norm", x, weight, out);
    by_rows(x, [&](std::int64_t i) { table_.rms_norm(x.row(i), weight.row(0), eps, out.row(i), x.row_elements()); });
  }

  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps,
                    const Tensor& out) override {
    checks::same_matrix("add_rms_norm", residual, delta);
    checks::norm("add_rms_norm", residual, weight, out);
    by_rows(residual, [&](std::int64_t i) {
      table_.add(residual.row(i), delta.row(i), residual.row_elements());
      table_.rms_norm(residual.row(i), weight.row(0), eps, out.row(i), residual.row_elements());
    });
  }

  void add(const Tensor& x, const Tensor& delta) override {
    checks::same_matrix("add", x, delta);
    by_rows(x, [&](std::int64_t i) { table_.add(x.row(i), delta.row(i), x.row_elements()); });
  }

  void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out) override {
    checks::matmul(x, w, bias, out);
    products_.multiply(x, packed(w), bias != nullptr ? bias->row(0) : nullptr, out);
    counters_.flops += static_cast<std::uint64_t>(2 * x.rows() * w.rows() * w.cols());
    counters_.weight_bytes += static_cast<std::uint64_t>(w.bytes());
  }

  void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm, const Rope& rope,
                        const PagedBatch& batch, KvLayer& layer) override {
    checks::rotate_and_store(q, k, v, norm, rope, batch, layer.shape);
    if (batch.num_tokens() == 0) return;
    rope_.prepare(rope, std::ranges::max(batch.positions));
    const KvLayout layout(layer.shape);
    const auto pairs = static_cast<std::int64_t>(rope.inv_freq.size());
    const auto rotate = rope.pairing == RopePairing::adjacent ? table_.rope_adjacent : table_.rope_half;
    const auto turn_heads = [&](const Tensor& x, std::int64_t t, std::int32_t position, const float* norm_weight) {
      for (std::int64_t h = 0; h < x.shape[1]; ++h) {
        float* head = x.row(t) + h * layout.head_dim;
        if (norm != nullptr) table_.rms_norm(head, norm_weight, norm->eps, head, layout.head_dim);
        rotate(head, rope_.row(position), pairs);
      }
    };
    const float* q_weight = norm != nullptr ? norm->q.row(0) : nullptr;
    const float* k_weight = norm != nullptr ? norm->k.row(0) : nullptr;
    const auto one_token = [&](std::int64_t t) {
      const std::int32_t position = batch.positions[static_cast<std::size_t>(t)];
      turn_heads(q, t, position, q_weight);
      turn_heads(k, t, position, k_weight);
      cpu::store_token(table_, layout, k.row(t), v.row(t), block_of(batch, t), position % batch.block_size,
                       layer.storage.data());
    };
    // Neighbours of a sequence share the cache lines of a sub-tile: a thread takes a sub-tile's worth of them.
    by_rows(q, one_token, batch.num_tokens() == batch.num_seqs() ? 1 : cpu::kLanes);
  }

  void attention(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale,
                 const Tensor& out) override {
    checks::attention(q, batch, layer.shape, out);
    attention_.run(q, layer, batch, scale, out);
    count_attention(q, layer.shape, batch);
  }

  void swiglu(const Tensor& gate_up, const Tensor& out) override {
    checks::swiglu(gate_up, out);
    const std::int64_t f = out.row_elements();
    by_rows(gate_up, [&](std::int64_t i) { table_.swiglu(gate_up.row(i), gate_up.row(i) + f, out.row(i), f); });
  }

  void gather(const Tensor& x, std::span<const std::int32_t> rows, const Tensor& out) override {
    checks::gather(x, rows, out);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(x.row(rows[i]), x.row_elements(), out.row(static_cast<std::int64_t>(i)));
    }
  }

  void copy_blocks(KvLayer& layer, std::span<const BlockCopy> copies) override {
    checks::copy_blocks(layer.shape, copies);
    const KvLayout layout(layer.shape);
    for (const BlockCopy& c : copies) {
      std::memmove(layout.head(layer.storage.data(), c.to, 0), layout.head(layer.storage.data(), c.from, 0),
                   static_cast<std::size_t>(layout.block_bytes()));
    }
  }

 private:
  static const cpu::PackedWeight& packed(const Weight& w) { return dynamic_cast<const cpu::PackedWeight&>(w); }

  static void copy(const char* operation, const Tensor& from, const Tensor& to) {
    checks::same_bytes(operation, from, to);
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
  }

  // The block that token `t` of the step belongs into.
  static std::int32_t block_of(const PagedBatch& batch, std::int64_t t) {
    const auto next = std::ranges::upper_bound(batch.q_indptr, static_cast<std::int32_t>(t)) - batch.q_indptr.begin();
    const std::int32_t first = batch.block_indptr[static_cast<std::size_t>(next - 1)];
    const std::int32_t index = batch.positions[static_cast<std::size_t>(t)] / batch.block_size;
    return batch.block_ids[static_cast<std::size_t>(first + index)];
  }

  // body(row) for each row of `shape_of`, on all threads when there is enough to do; `together` neighbours go to one.
  template <class Body>
  void by_rows(const Tensor& shape_of, Body body, std::int64_t together = 1) {
    const std::int64_t rows = shape_of.rows();
    const std::int64_t elements = std::max<std::int64_t>(1, shape_of.row_elements());
    const std::int64_t per_task = std::max(together, kElementsWorthSharing / 4 / elements);
    const auto run_task = [&](std::int64_t task, int) {
      for (std::int64_t i = task * per_task; i < std::min(rows, (task + 1) * per_task); ++i) body(i);
    };
    if (rows * shape_of.row_elements() < kElementsWorthSharing) {
      for (std::int64_t i = 0; i < rows; ++i) body(i);
    } else {
      team_.run((rows + per_task - 1) / per_task, run_task);
    }
  }

  void count_attention(const Tensor& q, const KvShape& shape, const PagedBatch& batch) {
    std::int64_t pairs = 0;
    std::int64_t positions = 0;
    for (const std::int32_t p : batch.positions) pairs += p + 1;
    for (std::int32_t s = 0; s < batch.num_seqs(); ++s) positions += batch.context_len(s);
    counters_.flops += static_cast<std::uint64_t>(4 * pairs * q.shape[1] * shape.head_dim);
    counters_.kv_bytes += static_cast<std::uint64_t>(2 * positions * shape.num_kv_heads *
                                                     kv_row_bytes(shape.type, shape.head_dim));
  }

  const KernelTable table_;
  std::string isa_;
  cpu::ThreadTeam team_;
  cpu::WeightArena arena_;
  cpu::Products products_;
  cpu::PagedAttention attention_;
  cpu::RopeTable rope_;
  OpCounters counters_;
};

#if defined(__x86_64__)
std::unique_ptr<Backend> make_for(CpuIsa isa, const cpu::CpuFeatures& has, int num_threads) {
  if (isa == CpuIsa::avx512) {
    KernelTable table = cpu::avx512_kernels();
    if (has.avx512_vnni) cpu::use_avx512_vnni(table);
    if (has.avx512_bf16) cpu::use_avx512_bf16(table);
    std::string name = table.name;
    name += has.avx512_vnni ? "+vnni" : "";
    name += has.avx512_bf16 ? "+bf16" : "";
    return std::make_unique<CpuBackend>(table, name, num_threads);
  }
  const KernelTable table = isa == CpuIsa::avx2 ? cpu::avx2_kernels() : cpu::portable_kernels();
  return std::make_unique<CpuBackend>(table, table.name, num_threads);
}
#else
std::unique_ptr<Backend> make_for(CpuIsa, const cpu::CpuFeatures&, int num_threads) {
  const KernelTable table = cpu::portable_kernels();
  return std::make_unique<CpuBackend>(table, table.name, num_threads);
}
#endif

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  const cpu::CpuFeatures has = cpu::cpu_features();
  CpuIsa isa = options.isa;
  if (isa == CpuIsa::best) isa = has.avx512 ? CpuIsa::avx512 : has.avx2 ? CpuIsa::avx2 : CpuIsa::portable;
  if ((isa == CpuIsa::avx512 && !has.avx512) || (isa == CpuIsa::avx2 && !has.avx2)) {
    throw std::runtime_error(std::string("this processor lacks the instructions that were asked for: ") +
                             (isa == CpuIsa::avx512 ? "AVX-512 F, BW, VL and DQ" : "AVX2 with FMA and F16C"));
  }
  return make_for(isa, has, options.num_threads);
}

}  // namespace fixpoint::kernels
