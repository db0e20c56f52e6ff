#include <algorithm>
#include <numeric>

#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

class RowsTest : public BackendTest {
 protected:
  void SetUp() override {
    if (!GetParam().invariant) GTEST_SKIP() << GetParam().name << " differs in its products only";
    BackendTest::SetUp();
  }
};

TEST_P(RowsTest, RmsNormMatchesTheReferenceForOddSizes) {
  Random random(21);
  for (const std::int64_t d : {1, 15, 16, 17, 100, 896, 4097}) {
    Floats x = random.normal(5 * d);
    Floats weight = random.normal(d);
    Floats actual = poison(5 * d);
    Floats expected = poison(5 * d);
    backend_->rms_norm(matrix(x, 5, d), vector(weight), 1e-5F, matrix(actual, 5, d));
    reference_->rms_norm(matrix(x, 5, d), vector(weight), 1e-5F, matrix(expected, 5, d));
    EXPECT_LT(worst_error(actual, expected), 3e-6) << d;
  }
}

TEST_P(RowsTest, AddRmsNormAddsAndNormalises) {
  Random random(22);
  Floats residual = random.normal(40 * 896);
  Floats delta = random.normal(40 * 896);
  Floats weight = random.normal(896);
  Floats residual_copy = residual;
  Floats actual = poison(40 * 896);
  Floats expected = poison(40 * 896);
  backend_->add_rms_norm(matrix(residual, 40, 896), matrix(delta, 40, 896), vector(weight), 1e-6F, matrix(actual, 40, 896));
  reference_->add_rms_norm(matrix(residual_copy, 40, 896), matrix(delta, 40, 896), vector(weight), 1e-6F,
                           matrix(expected, 40, 896));
  EXPECT_TRUE(same_bits(residual.data(), residual_copy.data(), 40 * 896));
  EXPECT_LT(worst_error(actual, expected), 3e-6);
}

TEST_P(RowsTest, ARowsBitsDoNotDependOnItsBatch) {
  Random random(23);
  constexpr std::int64_t kDim = 896;
  Floats x = random.normal(64 * 2 * kDim);
  Floats weight = random.normal(kDim);
  Floats together = poison(64 * kDim);
  Floats alone = poison(kDim);
  Tensor wide = matrix(x, 64, 2 * kDim);
  backend_->swiglu(wide, matrix(together, 64, kDim));
  for (std::int64_t i = 0; i < 64; ++i) {
    backend_->swiglu(Tensor::of(wide.row(i), DType::f32, {1, 2 * kDim}), matrix(alone, 1, kDim));
    ASSERT_TRUE(same_bits(alone.data(), together.data() + i * kDim, kDim));
  }
  backend_->rms_norm(matrix(x, 64, kDim), vector(weight), 1e-6F, matrix(together, 64, kDim));
  for (std::int64_t i = 0; i < 64; ++i) {
    backend_->rms_norm(Tensor::of(x.data() + i * kDim, DType::f32, {1, kDim}), vector(weight), 1e-6F, matrix(alone, 1, kDim));
    ASSERT_TRUE(same_bits(alone.data(), together.data() + i * kDim, kDim));
  }
}

TEST_P(RowsTest, SwigluMatchesTheReferenceUpToExtremes) {
  Random random(24);
  Floats gate_up = random.normal(3 * 2 * 691, 8.0F);
  for (const float extreme : {0.0F, -0.0F, 100.0F, -100.0F, 1e30F, -1e30F, 1e-30F}) {
    gate_up[static_cast<std::size_t>(random.between(0, 690))] = extreme;
  }
  Floats actual = poison(3 * 691);
  Floats expected = poison(3 * 691);
  backend_->swiglu(matrix(gate_up, 3, 2 * 691), matrix(actual, 3, 691));
  reference_->swiglu(matrix(gate_up, 3, 2 * 691), matrix(expected, 3, 691));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6F * std::fabs(expected[i]) + 1e-30F) << gate_up[i % 691];
  }
}

TEST_P(RowsTest, AddIsExact) {
  Random random(25);
  Floats x = random.normal(30 * 700);
  Floats delta = random.normal(30 * 700);
  Floats expected = x;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += delta[i];
  backend_->add(matrix(x, 30, 700), matrix(delta, 30, 700));
  EXPECT_TRUE(same_bits(x.data(), expected.data(), 30 * 700));
}

TEST_P(RowsTest, GathersUploadsAndDownloads) {
  Random random(28);
  Floats x = random.normal(7 * 33);
  Floats out = poison(3 * 33);
  const std::vector<std::int32_t> rows = {6, 0, 6};
  backend_->gather(matrix(x, 7, 33), rows, matrix(out, 3, 33));
  EXPECT_TRUE(same_bits(out.data(), x.data() + 6 * 33, 33));
  EXPECT_TRUE(same_bits(out.data() + 33, x.data(), 33));
  const Buffer memory = backend_->allocate(7 * 33 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0U);
  Floats back = poison(7 * 33);
  backend_->upload(matrix(x, 7, 33), memory.view(DType::f32, {7, 33}));
  backend_->download(memory.view(DType::f32, {7, 33}), matrix(back, 7, 33));
  backend_->synchronize();
  EXPECT_EQ(back, x);
  const std::vector<std::int32_t> outside = {7};
  EXPECT_THROW(backend_->gather(matrix(x, 7, 33), outside, matrix(out, 1, 33)), std::invalid_argument);
}

TEST_P(RowsTest, NoRowsIsNoWork) {
  Random random(29);
  HostMatrix w(DType::q8_0, 16, 32, random);
  const Tensor part = w.tensor();
  const auto weight = backend_->load_weight({&part, 1});
  Floats none;
  backend_->matmul(matrix(none, 0, 32), *weight, nullptr, matrix(none, 0, 16));
  backend_->embed(*weight, {}, matrix(none, 0, 32));
  backend_->gather(matrix(none, 0, 32), {}, matrix(none, 0, 32));
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, RowsTest, ::testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace fixpoint::kernels
