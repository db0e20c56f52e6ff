#include "tests/kernels/staging_backend.h"

#include <gtest/gtest.h>

#include <utility>

namespace fixpoint::kernels {
namespace {

class StagingBackend final : public Backend {
 public:
  explicit StagingBackend(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  OpCounters counters() const override { return device_->counters(); }
  Buffer allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return device_->allocate_host(bytes); }
  void upload(const Tensor& from, const Tensor& to) override { device_->upload(from, to); }
  void download(const Tensor& from, const Tensor& to) override { device_->download(from, to); }
  void synchronize() override { device_->synchronize(); }
  std::unique_ptr<Weight> load_weight(std::span<const Tensor> parts) override { return device_->load_weight(parts); }
  KvLayer allocate_kv(const KvShape& shape) override { return device_->allocate_kv(shape); }
  std::size_t kv_bytes(const KvShape& shape) const override { return device_->kv_bytes(shape); }

  void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out) override {
    Staged o(*this, out);
    device_->embed(table, tokens, o.tensor());
  }
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    Staged a(*this, x), w(*this, weight), o(*this, out);
    device_->rms_norm(a.tensor(), w.tensor(), eps, o.tensor());
  }
  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps, const Tensor& out) override {
    Staged r(*this, residual), d(*this, delta), w(*this, weight), o(*this, out);
    device_->add_rms_norm(r.tensor(), d.tensor(), w.tensor(), eps, o.tensor());
  }
  void add(const Tensor& x, const Tensor& delta) override {
    Staged a(*this, x), d(*this, delta);
    device_->add(a.tensor(), d.tensor());
  }
  void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out) override {
    Staged a(*this, x), b(*this, bias != nullptr ? *bias : Tensor{}), o(*this, out);
    device_->matmul(a.tensor(), w, bias != nullptr ? &b.tensor() : nullptr, o.tensor());
  }
  void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm, const Rope& rope,
                        const PagedBatch& batch, KvLayer& layer) override {
    const HeadNorm none{};
    Staged a(*this, q), b(*this, k), c(*this, v), q_norm(*this, norm != nullptr ? norm->q : none.q),
        k_norm(*this, norm != nullptr ? norm->k : none.k);
    const HeadNorm staged{q_norm.tensor(), k_norm.tensor(), norm != nullptr ? norm->eps : 0.0F};
    device_->rotate_and_store(a.tensor(), b.tensor(), c.tensor(), norm != nullptr ? &staged : nullptr, rope, batch,
                              layer);
  }
  void attention(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale, const Tensor& out) override {
    Staged a(*this, q), o(*this, out);
    device_->attention(a.tensor(), layer, batch, scale, o.tensor());
  }
  void swiglu(const Tensor& gate_up, const Tensor& out) override {
    Staged a(*this, gate_up), o(*this, out);
    device_->swiglu(a.tensor(), o.tensor());
  }
  void gather(const Tensor& x, std::span<const std::int32_t> rows, const Tensor& out) override {
    Staged a(*this, x), o(*this, out);
    device_->gather(a.tensor(), rows, o.tensor());
  }
  void copy_blocks(KvLayer& layer, std::span<const BlockCopy> copies) override { device_->copy_blocks(layer, copies); }

 private:
  /// A tensor's floats, from its first to its last, in device memory for one operation.
  class Staged {
   public:
    Staged(StagingBackend& owner, const Tensor& host) : owner_(owner), host_(host), tensor_(host) {
      const std::int64_t rows = host.shape.rank() > 0 ? host.rows() : 0;
      floats_ = rows == 0 || host.dtype != DType::f32 ? 0
                : host.shape.rank() == 1              ? host.shape[0]
                                                      : (rows - 1) * host.row_stride + host.row_elements();
      if (floats_ == 0) return;
      memory_ = owner_.device_->allocate(static_cast<std::size_t>(floats_) * sizeof(float));
      owner_.device_->upload(flat(host.data), flat(memory_.data()));
      tensor_.data = memory_.data();
    }
    ~Staged() {
      if (floats_ == 0) return;
      try {
        owner_.device_->download(flat(memory_.data()), flat(host_.data));
        owner_.device_->synchronize();
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
    Staged(const Staged&) = delete;
    Staged& operator=(const Staged&) = delete;
    [[nodiscard]] const Tensor& tensor() const { return tensor_; }

   private:
    [[nodiscard]] Tensor flat(std::byte* data) const { return Tensor::of(data, DType::f32, {floats_}); }
    StagingBackend& owner_;
    Tensor host_, tensor_;
    std::int64_t floats_ = 0;
    Buffer memory_;
  };

  std::unique_ptr<Backend> device_;
};

}  // namespace

std::unique_ptr<Backend> stage_through_device_memory(std::unique_ptr<Backend> device) {
  return std::make_unique<StagingBackend>(std::move(device));
}

}  // namespace fixpoint::kernels
