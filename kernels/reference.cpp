#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>

#include "kernels/backend.h"
#include "kernels/detail/checks.h"
#include "kernels/half.h"
#include "kernels/kv_row.h"
#include "kernels/quant.h"

namespace fixpoint::kernels {
namespace {

class ReferenceWeight final : public Weight {
 public:
  explicit ReferenceWeight(std::span<const Tensor> parts) : parts_(parts.begin(), parts.end()) {
    cols_ = parts_[0].shape[1];
    for (const Tensor& part : parts_) {
      rows_ += part.rows();
      bytes_ += part.bytes();
    }
  }

  [[nodiscard]] std::vector<float> row(std::int64_t index) const {
    std::vector<float> values(static_cast<std::size_t>(cols_));
    std::size_t part = 0;
    while (index >= parts_[part].rows()) index -= parts_[part++].rows();
    const Tensor& t = parts_[part];
    dequantize_row(t.dtype, t.data + index * row_bytes(t.dtype, cols_), values.data(), cols_);
    return values;
  }

 private:
  std::vector<Tensor> parts_;
};

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void normalise(const float* x, const float* weight, float eps, float* out, std::int64_t n) {
  const double scale = 1.0 / std::sqrt(dot(x, x, n) / static_cast<double>(n) + static_cast<double>(eps));
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>(static_cast<double>(x[i]) * scale * static_cast<double>(weight[i]));
  }
}

const float* floats(const Tensor& t) { return reinterpret_cast<const float*>(t.data); }

// Keys, then values: each [block, kv_head, slot] rows of a head's elements. A plain row is its elements; a quantised one is
// its scales and then a byte for each code.
struct KvRows {
  const KvShape& shape;
  std::byte* data;

  [[nodiscard]] std::int64_t scale_bytes() const { return 2 * kv_scales(shape.type, shape.head_dim); }
  [[nodiscard]] std::int64_t row_size() const {
    if (!is_quantised(shape.type)) return kv_row_bytes(shape.type, shape.head_dim);
    return scale_bytes() + (shape.head_dim + 1) / 2 * 2;
  }
  [[nodiscard]] std::int64_t block_size() const { return shape.num_kv_heads * shape.block_size * row_size(); }
  [[nodiscard]] std::byte* block(bool value, std::int32_t id) const {
    return data + ((value ? shape.num_blocks : 0) + id) * block_size();
  }
  [[nodiscard]] std::byte* row(bool value, std::int32_t block_id, std::int64_t head, std::int32_t slot) const {
    return block(value, block_id) + (head * shape.block_size + slot) * row_size();
  }
  // What F16 cannot hold is stored as its largest value: an infinity would turn a whole context into NaN.
  void store(const float* from, std::byte* to) const {
    const std::int64_t dim = shape.head_dim;
    if (is_quantised(shape.type)) {
      quantize_kv(shape.type, from, dim, reinterpret_cast<std::uint8_t*>(to + scale_bytes()),
                  reinterpret_cast<std::uint16_t*>(to));
    } else if (shape.type == KvType::f16) {
      auto* out = reinterpret_cast<std::uint16_t*>(to);
      for (std::int64_t i = 0; i < dim; ++i) out[i] = f32_to_f16(std::clamp(from[i], -65504.0F, 65504.0F));
    } else {
      quantize_row(shape.type == KvType::f32 ? DType::f32 : DType::bf16, from, to, dim);
    }
  }
  void load(const std::byte* from, float* to) const {
    const std::int64_t dim = shape.head_dim;
    if (is_quantised(shape.type)) {
      dequantize_kv(shape.type, reinterpret_cast<const std::uint8_t*>(from + scale_bytes()),
                    reinterpret_cast<const std::uint16_t*>(from), dim, to);
    } else {
      const DType type = shape.type == KvType::f32 ? DType::f32 : shape.type == KvType::f16 ? DType::f16 : DType::bf16;
      dequantize_row(type, from, to, dim);
    }
  }
};

// The block and the slot in it of position `position` of sequence `s`.
struct Place {
  std::int32_t block_id;
  std::int32_t slot;
  Place(const PagedBatch& b, std::int32_t s, std::int32_t position)
      : block_id(b.block_ids[static_cast<std::size_t>(b.block_indptr[static_cast<std::size_t>(s)] +
                                                      position / b.block_size)]),
        slot(position % b.block_size) {}
};

template <class Visit>
void for_each_token(const PagedBatch& b, Visit visit) {
  for (std::int32_t s = 0; s < b.num_seqs(); ++s) {
    const auto i = static_cast<std::size_t>(s);
    for (std::int32_t t = b.q_indptr[i]; t < b.q_indptr[i + 1]; ++t) {
      visit(s, t, b.positions[static_cast<std::size_t>(t)]);
    }
  }
}

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  OpCounters counters() const override { return counters_; }
  void synchronize() override {}

  Buffer allocate(std::size_t bytes) override {
    constexpr std::align_val_t kAlignment{64};
    return {::operator new(bytes, kAlignment), bytes,
            [](void* data, std::size_t, void*) { ::operator delete(data, kAlignment); }, nullptr};
  }

  void upload(const Tensor& from, const Tensor& to) override { copy("upload", from, to); }
  void download(const Tensor& from, const Tensor& to) override { copy("download", from, to); }

  std::unique_ptr<Weight> load_weight(std::span<const Tensor> parts) override {
    checks::weight_parts(parts);
    return std::make_unique<ReferenceWeight>(parts);
  }

  KvLayer allocate_kv(const KvShape& shape) override {
    checks::kv_shape(shape);
    return {shape, allocate(kv_bytes(shape))};
  }
  std::size_t kv_bytes(const KvShape& shape) const override {
    return static_cast<std::size_t>(2 * shape.num_blocks * KvRows{shape, nullptr}.block_size());
  }

  void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out) override {
    checks::embed(table, tokens, out);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::ranges::copy(weight(table).row(tokens[i]), out.row(static_cast<std::int64_t>(i)));
    }
  }

  void rms_norm(const Tensor& x, const Tensor& w, float eps, const Tensor& out) override {
    checks::norm("rms_norm", x, w, out);
    for (std::int64_t i = 0; i < x.rows(); ++i) normalise(x.row(i), floats(w), eps, out.row(i), x.row_elements());
  }

  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& w, float eps,
                    const Tensor& out) override {
    add(residual, delta);
    rms_norm(residual, w, eps, out);
  }

  void add(const Tensor& x, const Tensor& delta) override {
    checks::same_matrix("add", x, delta);
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      for (std::int64_t j = 0; j < x.row_elements(); ++j) x.row(i)[j] += delta.row(i)[j];
    }
  }

  void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out) override {
    checks::matmul(x, w, bias, out);
    for (std::int64_t r = 0; r < w.rows(); ++r) {
      const std::vector<float> row = weight(w).row(r);
      const double start = bias != nullptr ? static_cast<double>(floats(*bias)[r]) : 0.0;
      for (std::int64_t i = 0; i < x.rows(); ++i) {
        out.row(i)[r] = static_cast<float>(dot(x.row(i), row.data(), w.cols()) + start);
      }
    }
    counters_.flops += static_cast<std::uint64_t>(2 * x.rows() * w.rows() * w.cols());
    counters_.weight_bytes += static_cast<std::uint64_t>(w.bytes());
  }

  void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm, const Rope& rope,
                        const PagedBatch& batch, KvLayer& layer) override {
    checks::rotate_and_store(q, k, v, norm, rope, batch, layer.shape);
    const KvRows kv{layer.shape, layer.storage.data()};
    const std::int64_t dim = layer.shape.head_dim;
    for_each_token(batch, [&](std::int32_t s, std::int32_t t, std::int32_t position) {
      for (const bool key : {false, true}) {
        const Tensor& x = key ? k : q;
        for (std::int64_t h = 0; h < x.shape[1]; ++h) {
          float* head = x.row(t) + h * dim;
          if (norm != nullptr) normalise(head, floats(key ? norm->k : norm->q), norm->eps, head, dim);
          rotate(head, position, rope);
        }
      }
      const Place place(batch, s, position);
      for (std::int64_t h = 0; h < layer.shape.num_kv_heads; ++h) {
        kv.store(k.row(t) + h * dim, kv.row(false, place.block_id, h, place.slot));
        kv.store(v.row(t) + h * dim, kv.row(true, place.block_id, h, place.slot));
      }
    });
  }

  void attention(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale,
                 const Tensor& out) override {
    checks::attention(q, batch, layer.shape, out);
    const std::int64_t heads = q.shape[1];
    const std::int64_t dim = q.shape[2];
    for_each_token(batch, [&](std::int32_t s, std::int32_t t, std::int32_t position) {
      for (std::int64_t h = 0; h < heads; ++h) {
        attend(q.row(t) + h * dim, layer, h / (heads / layer.shape.num_kv_heads), batch, s, position, scale,
               out.row(t) + h * dim);
      }
      counters_.flops += static_cast<std::uint64_t>(4 * dim * heads * (position + 1));
    });
    for (std::int32_t s = 0; s < batch.num_seqs(); ++s) {
      counters_.kv_bytes += static_cast<std::uint64_t>(2 * batch.context_len(s) * layer.shape.num_kv_heads *
                                                       kv_row_bytes(layer.shape.type, dim));
    }
  }

  void swiglu(const Tensor& gate_up, const Tensor& out) override {
    checks::swiglu(gate_up, out);
    for (std::int64_t i = 0; i < out.rows(); ++i) {
      const float* gate = gate_up.row(i);
      const float* up = gate + out.row_elements();
      for (std::int64_t j = 0; j < out.row_elements(); ++j) {
        const double g = gate[j];
        out.row(i)[j] = static_cast<float>(g / (1.0 + std::exp(-g)) * static_cast<double>(up[j]));
      }
    }
  }

  void gather(const Tensor& x, std::span<const std::int32_t> rows, const Tensor& out) override {
    checks::gather(x, rows, out);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(x.row(rows[i]), x.row_elements(), out.row(static_cast<std::int64_t>(i)));
    }
  }

  void copy_blocks(KvLayer& layer, std::span<const BlockCopy> copies) override {
    checks::copy_blocks(layer.shape, copies);
    const KvRows kv{layer.shape, layer.storage.data()};
    for (const BlockCopy& c : copies) {
      for (const bool value : {false, true}) {
        std::memmove(kv.block(value, c.to), kv.block(value, c.from), static_cast<std::size_t>(kv.block_size()));
      }
    }
  }

 private:
  static const ReferenceWeight& weight(const Weight& w) { return dynamic_cast<const ReferenceWeight&>(w); }

  static void copy(const char* operation, const Tensor& from, const Tensor& to) {
    checks::same_bytes(operation, from, to);
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
  }

  static void rotate(float* head, std::int32_t position, const Rope& rope) {
    const std::size_t pairs = rope.inv_freq.size();
    for (std::size_t i = 0; i < pairs; ++i) {
      const bool adjacent = rope.pairing == RopePairing::adjacent;
      float& a = head[adjacent ? 2 * i : i];
      float& b = head[adjacent ? 2 * i + 1 : i + pairs];
      const double angle = static_cast<double>(position) * static_cast<double>(rope.inv_freq[i]);
      const double c = std::cos(angle) * static_cast<double>(rope.magnitude);
      const double s = std::sin(angle) * static_cast<double>(rope.magnitude);
      const double x = a;
      const double y = b;
      a = static_cast<float>(x * c - y * s);
      b = static_cast<float>(x * s + y * c);
    }
  }

  static void attend(const float* q, const KvLayer& layer, std::int64_t kv_head, const PagedBatch& batch,
                     std::int32_t s, std::int32_t position, float scale, float* out) {
    const KvRows kv{layer.shape, layer.storage.data()};
    const std::int64_t dim = layer.shape.head_dim;
    std::vector<float> row(static_cast<std::size_t>(dim));
    std::vector<double> weights;
    for (std::int32_t p = 0; p <= position; ++p) {
      const Place place(batch, s, p);
      kv.load(kv.row(false, place.block_id, kv_head, place.slot), row.data());
      weights.push_back(dot(q, row.data(), dim) * static_cast<double>(scale));
    }
    const double highest = *std::ranges::max_element(weights);
    double total = 0.0;
    for (double& w : weights) total += w = std::exp(w - highest);
    std::vector<double> sum(static_cast<std::size_t>(dim));
    for (std::int32_t p = 0; p <= position; ++p) {
      const Place place(batch, s, p);
      kv.load(kv.row(true, place.block_id, kv_head, place.slot), row.data());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += weights[static_cast<std::size_t>(p)] * static_cast<double>(row[i]);
      }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) out[i] = static_cast<float>(sum[i] / total);
  }

  OpCounters counters_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace fixpoint::kernels
