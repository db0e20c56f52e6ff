#include "kernels/cuda/gemm.h"
#include "kernels/half.h"
#include "tests/cuda_emulation/emulated_stream.h"

namespace fixpoint::kernels::cuda {
namespace {

float element(const GemmCall& call, const void* matrix, std::int64_t index) {
  return call.type == DType::f32 ? static_cast<const float*>(matrix)[index]
                                 : bf16_to_f32(static_cast<const std::uint16_t*>(matrix)[index]);
}

void multiply_now(const GemmCall& call) {
  for (std::int64_t i = 0; i < call.n; ++i) {
    for (std::int64_t r = 0; r < call.rows; ++r) {
      double sum = call.bias != nullptr ? static_cast<double>(call.bias[r]) : 0.0;
      for (std::int64_t k = 0; k < call.cols; ++k) {
        sum += static_cast<double>(element(call, call.x, i * call.x_stride + k)) *
               static_cast<double>(element(call, call.w, r * call.w_stride + k));
      }
      call.out[i * call.out_stride + r] = static_cast<float>(sum);
    }
  }
}

/// Stands in for cuBLASLt: the same operands, the products in double precision.
class ReferenceGemm final : public Gemm {
 public:
  explicit ReferenceGemm(const Stream& stream) : stream_(stream) {}
  void multiply(const GemmCall& call) override {
    stream_.get()->add([call] { multiply_now(call); });
  }

 private:
  const Stream& stream_;
};

}  // namespace

std::unique_ptr<Gemm> make_gemm(const Stream& stream) { return std::make_unique<ReferenceGemm>(stream); }

}  // namespace fixpoint::kernels::cuda
