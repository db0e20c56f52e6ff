#include <cublasLt.h>

#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

#include "kernels/cuda/cublas_library.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/gemm.h"

namespace fixpoint::kernels::cuda {
namespace {

// Enough for every algorithm on the architectures we build for (NVIDIA advises 32 MiB for sm_90).
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20U;

void check(cublasStatus_t result, const char* call, const std::source_location& place = std::source_location::current()) {
  if (result != CUBLAS_STATUS_SUCCESS) throw CudaError(call, "status " + std::to_string(static_cast<int>(result)), place);
}

/// One of the library's objects: created by the first function, destroyed by the second.
template <class Handle>
class Descriptor {
 public:
  template <class Create, class... Arguments>
  Descriptor(const char* call, cublasStatus_t (*destroy)(Handle), Create create, Arguments... arguments) : destroy_(destroy) {
    check(create(&handle_, arguments...), call);
  }
  ~Descriptor() { static_cast<void>(destroy_(handle_)); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  cublasStatus_t (*destroy_)(Handle);
};

/// The largest power of two up to 256 that divides the address and the stride.
std::uint32_t alignment(const void* data, std::int64_t stride_bytes) {
  const auto bits = reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(stride_bytes) | 256U;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

/// The descriptors of one product. cuBLAS counts columns first: its matrices are ours transposed, so it computes
/// out^T [rows, n] = w [rows, cols] * x^T [cols, n], where w is stored as [cols, rows] and taken transposed.
struct Problem {
  const CublasLibrary& lib;
  Descriptor<cublasLtMatmulDesc_t> operation;
  Descriptor<cublasLtMatrixLayout_t> w, x, out;

  Problem(const CublasLibrary& library, const GemmCall& call)
      : lib(library),
        operation("cublasLtMatmulDescCreate", lib.matmul_desc_destroy, lib.matmul_desc_create,
                  call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        w(layout(call.type, call.cols, call.rows, call.w_stride)),
        x(layout(call.type, call.cols, call.n, call.x_stride)),
        out(layout(DType::f32, call.rows, call.n, call.out_stride)) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
    if (call.bias != nullptr) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
      const cudaDataType_t type = CUDA_R_32F;
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
    }
  }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check(lib.matmul_desc_set_attribute(operation.get(), attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  [[nodiscard]] Descriptor<cublasLtMatrixLayout_t> layout(DType type, std::int64_t rows, std::int64_t cols, std::int64_t stride) const {
    return Descriptor<cublasLtMatrixLayout_t>("cublasLtMatrixLayoutCreate", lib.matrix_layout_destroy, lib.matrix_layout_create,
                                              type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                              static_cast<std::uint64_t>(cols), stride);
  }
};

class CublasGemm final : public Gemm {
 public:
  explicit CublasGemm(const Stream& stream)
      : stream_(stream), handle_("cublasLtCreate", lib_.destroy, lib_.create), workspace_(kWorkspaceBytes) {}

  void multiply(const GemmCall& call) override {
    const Problem problem(lib_, call);
    const float one = 1.0F;
    const float zero = 0.0F;
    check(lib_.matmul(handle_.get(), problem.operation.get(), &one, call.w, problem.w.get(), call.x, problem.x.get(), &zero, call.out,
                      problem.out.get(), call.out, problem.out.get(), algorithm(problem, call), workspace_.data(), workspace_.bytes(),
                      stream_.get()),
          "cublasLtMatmul");
  }

 private:
  using Key = std::tuple<DType, bool, bool, std::int32_t, std::int32_t, std::int32_t, std::int64_t, std::int64_t, std::int64_t, std::uint32_t>;

  /// The library's first choice for a shape, asked for once.
  const cublasLtMatmulAlgo_t* algorithm(const Problem& problem, const GemmCall& call) {
    const std::int64_t element = call.type == DType::bf16 ? 2 : 4;
    const std::array<std::uint32_t, 3> aligned{alignment(call.w, call.w_stride * element), alignment(call.x, call.x_stride * element),
                                               alignment(call.out, call.out_stride * 4)};
    const Key key{call.type, call.tf32, call.bias != nullptr, call.n, call.rows, call.cols, call.w_stride, call.x_stride, call.out_stride,
                  aligned[0] | aligned[1] << 10U | aligned[2] << 20U};
    const auto found = algorithms_.find(key);
    if (found != algorithms_.end()) return &found->second;

    const Descriptor<cublasLtMatmulPreference_t> preference("cublasLtMatmulPreferenceCreate", lib_.preference_destroy, lib_.preference_create);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(lib_.preference_set_attribute(preference.get(), attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[0]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[1]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    check(lib_.heuristic(handle_.get(), problem.operation.get(), problem.w.get(), problem.x.get(), problem.out.get(), problem.out.get(),
                         preference.get(), 1, &result, &count),
          "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0) throw std::runtime_error("cublasLtMatmulAlgoGetHeuristic: no algorithm for this product");
    return &algorithms_.emplace(key, result.algo).first->second;
  }

  const Stream& stream_;
  CublasLibrary lib_;
  Descriptor<cublasLtHandle_t> handle_;
  DeviceMemory workspace_;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace

std::unique_ptr<Gemm> make_gemm(const Stream& stream) { return std::make_unique<CublasGemm>(stream); }

}  // namespace fixpoint::kernels::cuda
