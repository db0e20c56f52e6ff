#include "kernels/cuda/cublas_library.h"

#include <gtest/gtest.h>

namespace fixpoint::kernels::cuda {
namespace {

TEST(CublasLibraryTest, HasEveryFunctionThatIsCalled) {
  const CublasLibrary library;  // throws where one is missing
  EXPECT_NE(library.matmul, nullptr);
}

}  // namespace
}  // namespace fixpoint::kernels::cuda
