#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/quant.h"

namespace fixpoint::kernels {

using Floats = std::vector<float>;

/// Random numbers of one test, always the same.
class Random {
 public:
  explicit Random(unsigned seed) : rng_(seed) {}
  Floats normal(std::int64_t n, float deviation = 1.0F) {
    std::normal_distribution<float> d(0.0F, deviation);
    Floats values(static_cast<std::size_t>(n));
    for (float& v : values) v = d(rng_);
    return values;
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng_);
  }
  std::mt19937& engine() { return rng_; }

 private:
  std::mt19937 rng_;
};

/// A matrix in a file's bytes.
struct HostMatrix {
  DType type;
  std::int64_t rows, cols;
  std::vector<std::byte> bytes;

  HostMatrix(DType t, std::int64_t r, std::int64_t c, Random& random, float deviation = 0.05F)
      : type(t), rows(r), cols(c), bytes(static_cast<std::size_t>(r * row_bytes(t, c))) {
    const Floats values = random.normal(r * c, deviation);
    for (std::int64_t i = 0; i < r; ++i) {
      quantize_row(t, values.data() + i * c, bytes.data() + i * row_bytes(t, c), c);
    }
  }
  [[nodiscard]] Tensor tensor() { return Tensor::of(bytes.data(), type, {rows, cols}); }
};

inline Tensor matrix(Floats& values, std::int64_t rows, std::int64_t cols) {
  return Tensor::of(values.data(), DType::f32, {rows, cols});
}
inline Tensor cube(Floats& values, std::int64_t n, std::int64_t heads, std::int64_t dim) {
  return Tensor::of(values.data(), DType::f32, {n, heads, dim});
}
inline Tensor vector(Floats& values) {
  return Tensor::of(values.data(), DType::f32, {static_cast<std::int64_t>(values.size())});
}
/// What an operation must overwrite.
inline Floats poison(std::int64_t n) {
  return Floats(static_cast<std::size_t>(n), std::numeric_limits<float>::quiet_NaN());
}

inline bool same_bits(const float* a, const float* b, std::int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

/// Largest difference, relative to the root mean square of `expected`; infinite where something is not a number.
inline double worst_error(const Floats& actual, const Floats& expected) {
  double square = 0.0;
  double worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(actual[i])) return std::numeric_limits<double>::infinity();
    square += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    worst = std::max(worst, std::fabs(static_cast<double>(actual[i]) - static_cast<double>(expected[i])));
  }
  return worst / (std::sqrt(square / static_cast<double>(expected.size())) + 1e-30);
}

/// Root mean square error of a round trip, relative to the values'.
inline double relative_error(const Floats& values, const Floats& back) {
  double error = 0.0;
  double total = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(values[i]) - static_cast<double>(back[i]), 2);
    total += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / total);
}

/// A backend that the suite runs over.
struct BackendCase {
  std::string name;
  /// Null where this machine cannot have it.
  std::function<std::unique_ptr<Backend>(int threads)> make;
  int threads = 1;
  bool exact = false;      ///< to the bit what the reference computes
  bool slow = false;       ///< far slower than a processor: smaller cases
  bool invariant = true;   ///< a row's bits don't depend on what else is in the call
};

/// The cases of this executable: the processor's instruction sets, or the CUDA backend on a device or on the emulated one.
[[nodiscard]] std::vector<BackendCase> backend_cases();

/// One body over every backend; skips those that this machine lacks.
class BackendTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    backend_ = GetParam().make(GetParam().threads);
    if (backend_ == nullptr) GTEST_SKIP() << "this machine lacks " << GetParam().name;
  }
  [[nodiscard]] bool exact() const { return GetParam().exact; }
  [[nodiscard]] bool slow() const { return GetParam().slow; }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> reference_ = make_reference_backend();
};

inline std::string case_name(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

}  // namespace fixpoint::kernels
