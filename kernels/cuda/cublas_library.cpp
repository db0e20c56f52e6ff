#include "kernels/cuda/cublas_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace fixpoint::kernels::cuda {
namespace {

/// Stays loaded: unloading a library that has touched the device gains nothing.
void* open_library() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  // As the dynamic linker finds it, then where it was at build time.
  for (const std::string& path : {name, std::string(FIXPOINT_CUDA_LIBRARIES) + "/" + name}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  throw std::runtime_error("cuda: " + std::string(dlerror()));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error("cuda: cuBLASLt has no " + std::string(name));
}

}  // namespace

CublasLibrary::CublasLibrary() {
  void* library = open_library();
  find(library, "cublasLtCreate", create);
  find(library, "cublasLtDestroy", destroy);
  find(library, "cublasLtMatmul", matmul);
  find(library, "cublasLtMatmulAlgoGetHeuristic", heuristic);
  find(library, "cublasLtMatmulDescCreate", matmul_desc_create);
  find(library, "cublasLtMatmulDescDestroy", matmul_desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", matmul_desc_set_attribute);
  find(library, "cublasLtMatrixLayoutCreate", matrix_layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", matrix_layout_destroy);
  find(library, "cublasLtMatmulPreferenceCreate", preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", preference_set_attribute);
}

}  // namespace fixpoint::kernels::cuda
