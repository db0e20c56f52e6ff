#pragma once

#include <cublasLt.h>

namespace fixpoint::kernels::cuda {

/// The functions of cuBLASLt that we call, from the shared library of the toolkit that the program was built with. It is
/// loaded when the first product needs it, not with the program: it is half a gigabyte and takes about a second, which
/// every start of every command would pay, with or without a GPU.
class CublasLibrary {
 public:
  /// Throws std::runtime_error that names the library or the function that is missing.
  CublasLibrary();

  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create;
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute;
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_attribute;
};

}  // namespace fixpoint::kernels::cuda
