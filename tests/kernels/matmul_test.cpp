#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

constexpr DType kTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1,
                            DType::q5_0, DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k};

// What rounding the rows of x costs: nothing for F32 and F16, 8 bits of mantissa for BF16, 8-bit codes for block types.
double bound(DType type) {
  switch (type) {
    case DType::f32:
    case DType::f16: return 2e-5;
    case DType::bf16: return 2e-2;
    default: return 4e-2;
  }
}

class MatmulTest : public BackendTest {
 protected:
  Floats multiply(Backend& backend, std::span<const Tensor> parts, Floats& x, std::int64_t n, Floats* bias = nullptr) {
    const auto w = backend.load_weight(parts);
    Floats out = poison(n * w->rows());
    Tensor b;
    if (bias != nullptr) b = vector(*bias);
    backend.matmul(matrix(x, n, w->cols()), *w, bias != nullptr ? &b : nullptr, matrix(out, n, w->rows()));
    return out;
  }
};

TEST_P(MatmulTest, MatchesTheReferenceForEveryTypeAndManyShapes) {
  Random random(1);
  for (const DType type : kTypes) {
    const std::int64_t block = traits(type).block_elements;
    for (const std::int64_t wanted : {20, 896, 688, 21}) {
      if (wanted == 21 && block > 1) continue;  // odd columns: plain types only
      const std::int64_t cols = (wanted + block - 1) / block * block;
      for (const std::int64_t n : {1, 2, 3, 5, 9, 13, 17, 18, 32, 40}) {
        const std::int64_t rows = random.between(1, 70);
        HostMatrix w(type, rows, cols, random);
        Floats x = random.normal(n * cols);
        Floats bias = random.normal(rows);
        const Tensor part = w.tensor();
        const Floats expected = multiply(*reference_, {&part, 1}, x, n, &bias);
        const Floats actual = multiply(*backend_, {&part, 1}, x, n, &bias);
        ASSERT_LT(worst_error(actual, expected), exact() ? 1e-30 : bound(type))
            << traits(type).name << " rows " << rows << " cols " << cols << " n " << n;
      }
    }
  }
}

TEST_P(MatmulTest, ARowsBitsDoNotDependOnItsBatch) {
  if (!GetParam().invariant) GTEST_SKIP() << GetParam().name << " does not promise it";
  Random random(2);
  for (const DType type : kTypes) {
    const std::int64_t block = traits(type).block_elements;
    for (int round = 0; round < 6; ++round) {
      const std::int64_t cols = block * random.between(1, 1 + 600 / block);
      const std::int64_t rows = random.between(1, 150);
      const std::int64_t n = random.between(2, 64);
      HostMatrix w(type, rows, cols, random);
      const Tensor part = w.tensor();
      const auto weight = backend_->load_weight({&part, 1});
      Floats x = random.normal(n * cols);
      Floats together = poison(n * rows);
      backend_->matmul(matrix(x, n, cols), *weight, nullptr, matrix(together, n, rows));
      for (std::int64_t first = 0; first < n;) {
        const std::int64_t count = std::min(n - first, random.between(1, 6));
        Floats some(x.begin() + first * cols, x.begin() + (first + count) * cols);
        Floats out = poison(count * rows);
        backend_->matmul(matrix(some, count, cols), *weight, nullptr, matrix(out, count, rows));
        ASSERT_TRUE(same_bits(out.data(), together.data() + first * rows, count * rows))
            << traits(type).name << " rows " << rows << " cols " << cols << " batch " << n << " row " << first;
        first += count;
      }
    }
  }
}

TEST_P(MatmulTest, StacksMatricesOfDifferentTypes) {
  Random random(3);
  HostMatrix a(DType::q4_k, 40, 512, random);
  HostMatrix b(DType::q6_k, 17, 512, random);
  HostMatrix c(DType::bf16, 5, 512, random);
  HostMatrix d(DType::f32, 33, 512, random);
  const Tensor parts[] = {a.tensor(), b.tensor(), c.tensor(), d.tensor()};
  Floats x = random.normal(19 * 512);
  Floats bias = random.normal(95);
  const Floats stacked = multiply(*backend_, parts, x, 19, &bias);
  ASSERT_LT(worst_error(stacked, multiply(*reference_, parts, x, 19, &bias)), 4e-2);
  Floats bias_b(bias.begin() + 40, bias.begin() + 57);
  const Floats alone = multiply(*backend_, {&parts[1], 1}, x, 19, &bias_b);
  for (std::int64_t i = 0; i < 19; ++i) {
    EXPECT_TRUE(same_bits(stacked.data() + i * 95 + 40, alone.data() + i * 17, 17)) << "row " << i;
  }
}

TEST_P(MatmulTest, ReadsAndWritesStridedRows) {
  Random random(4);
  HostMatrix w(DType::q8_0, 48, 64, random);
  const Tensor part = w.tensor();
  const auto weight = backend_->load_weight({&part, 1});
  Floats wide = random.normal(5 * 100);
  Floats packed;
  for (std::size_t i = 0; i < 5; ++i) {
    packed.insert(packed.end(), wide.begin() + static_cast<std::ptrdiff_t>(i * 100 + 36),
                  wide.begin() + static_cast<std::ptrdiff_t>(i * 100 + 100));
  }
  Tensor x = Tensor::of(wide.data() + 36, DType::f32, {5, 64});
  x.row_stride = 100;
  Floats out = poison(5 * 60);
  Tensor strided = Tensor::of(out.data() + 6, DType::f32, {5, 48});
  strided.row_stride = 60;
  backend_->matmul(x, *weight, nullptr, strided);
  Floats expected = poison(5 * 48);
  backend_->matmul(matrix(packed, 5, 64), *weight, nullptr, matrix(expected, 5, 48));
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(same_bits(strided.row(i), expected.data() + i * 48, 48));
    EXPECT_TRUE(std::isnan(out[static_cast<std::size_t>(i * 60 + 5)]));
    EXPECT_TRUE(std::isnan(out[static_cast<std::size_t>(i * 60 + 54)]));
  }
}

TEST_P(MatmulTest, EmbedsTheRowsOfEveryType) {
  Random random(5);
  const std::vector<std::int32_t> tokens = {36, 0, 17, 16, 15, 36};
  for (const DType type : kTypes) {
    for (const std::int64_t cols : {512, 21}) {
      if (cols % traits(type).block_elements != 0) continue;
      HostMatrix w(type, 37, cols, random);
      const Tensor part = w.tensor();
      const auto table = backend_->load_weight({&part, 1});
      Floats out = poison(6 * cols);
      backend_->embed(*table, tokens, matrix(out, 6, cols));
      Floats expected(out.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        dequantize_row(type, w.bytes.data() + tokens[i] * row_bytes(type, cols), expected.data() + static_cast<std::int64_t>(i) * cols, cols);
      }
      EXPECT_LT(worst_error(out, expected), 1e-6) << traits(type).name << " cols " << cols;
    }
  }
}

TEST_P(MatmulTest, ReadsNothingPastTheEndOfAMappedFile) {
  Random random(6);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const DType type : kTypes) {
    const std::int64_t cols = traits(type).block_elements * 3;
    HostMatrix w(type, 21, cols, random);
    const std::size_t pages = (w.bytes.size() + page - 1) / page;
    auto* map = static_cast<std::byte*>(
        mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(map, MAP_FAILED);
    ASSERT_EQ(mprotect(map + pages * page, page, PROT_NONE), 0);
    std::byte* start = map + pages * page - w.bytes.size();
    std::ranges::copy(w.bytes, start);
    const Tensor part = Tensor::of(start, type, {21, cols});
    Floats x = random.normal(cols);
    const Floats out = multiply(*backend_, {&part, 1}, x, 1);
    EXPECT_TRUE(std::ranges::all_of(out, [](float v) { return std::isfinite(v); })) << traits(type).name;
    munmap(map, (pages + 1) * page);
  }
}

TEST_P(MatmulTest, KeepsOutliersWithinTheirBlock) {
  // A huge element must not cost the other blocks of the row their precision.
  Random random(7);
  HostMatrix w(DType::q8_0, 16, 256, random);
  const Tensor part = w.tensor();
  Floats x = random.normal(256);
  x[3] = 0.0F;
  const Floats calm = multiply(*backend_, {&part, 1}, x, 1);
  Floats row(256);
  x[3] = 1000.0F;
  const Floats loud = multiply(*backend_, {&part, 1}, x, 1);
  for (std::size_t i = 0; i < 16; ++i) {
    dequantize_row(DType::q8_0, w.bytes.data() + static_cast<std::int64_t>(i) * row_bytes(DType::q8_0, 256), row.data(), 256);
    double elsewhere = 0.0;  // the other blocks alone
    for (std::size_t k = 32; k < 256; ++k) elsewhere += static_cast<double>(row[k]) * static_cast<double>(x[k]);
    // Codes of the loud block have steps of 1000 / 127.
    EXPECT_NEAR(static_cast<double>(loud[i]), 1000.0 * static_cast<double>(row[3]) + elsewhere, 31 * 4.0 * 0.2) << calm[i];
  }
}

TEST_P(MatmulTest, CountsWorkAndTraffic) {
  Random random(8);
  HostMatrix w(DType::q4_0, 32, 64, random);
  const Tensor part = w.tensor();
  Floats x = random.normal(3 * 64);
  static_cast<void>(multiply(*backend_, {&part, 1}, x, 3));
  EXPECT_EQ(backend_->counters().flops, 2U * 3 * 32 * 64);
  EXPECT_EQ(backend_->counters().weight_bytes, 32U * 36);
}

TEST_P(MatmulTest, KeptPanelsGiveTheSameBitsWithoutTheMatrix) {
  if (backend_->packed_form().empty()) GTEST_SKIP() << GetParam().name << " keeps none";
  Random random(12);
  for (const DType type : kTypes) {
    for (const DType second : {type, DType::bf16, DType::q8_0}) {
      HostMatrix a(type, 21, 256, random);
      HostMatrix b(second, 40, 256, random);
      const Tensor parts[] = {a.tensor(), b.tensor()};
      const auto original = backend_->load_weight(parts);
      // A memory of its own, on a cache line.
      const auto bytes = original->packed();
      const Buffer kept = backend_->allocate(bytes.size());
      std::memcpy(kept.data(), bytes.data(), bytes.size());
      const Tensor shapes[] = {Tensor::of(nullptr, type, {21, 256}), Tensor::of(nullptr, second, {40, 256})};
      const auto again = backend_->load_packed(shapes, {kept.data(), bytes.size()});
      ASSERT_NE(again, nullptr) << traits(type).name;
      EXPECT_EQ(again->rows(), 61);
      EXPECT_EQ(again->cols(), 256);
      EXPECT_EQ(again->bytes(), original->bytes());
      Floats x = random.normal(5 * 256);
      Floats expected = poison(5 * 61);
      Floats actual = poison(5 * 61);
      backend_->matmul(matrix(x, 5, 256), *original, nullptr, matrix(expected, 5, 61));
      backend_->matmul(matrix(x, 5, 256), *again, nullptr, matrix(actual, 5, 61));
      EXPECT_TRUE(same_bits(actual.data(), expected.data(), 5 * 61)) << traits(type).name;
      const std::vector<std::int32_t> tokens = {0, 20, 21, 60};
      Floats row = poison(4 * 256);
      Floats same_row = poison(4 * 256);
      backend_->embed(*original, tokens, matrix(row, 4, 256));
      backend_->embed(*again, tokens, matrix(same_row, 4, 256));
      EXPECT_TRUE(same_bits(same_row.data(), row.data(), 4 * 256)) << traits(type).name;
    }
  }
}

TEST_P(MatmulTest, KeptPanelsOfAnotherSizeOrPlaceAreRefused) {
  if (backend_->packed_form().empty()) GTEST_SKIP() << GetParam().name << " keeps none";
  Random random(13);
  HostMatrix w(DType::q4_0, 40, 64, random);
  const Tensor part = w.tensor();
  const auto size = backend_->load_weight({&part, 1})->packed().size();
  const Buffer kept = backend_->allocate(size + 64);
  EXPECT_NE(backend_->load_packed({&part, 1}, {kept.data(), size}), nullptr);
  EXPECT_EQ(backend_->load_packed({&part, 1}, {kept.data(), size - 64}), nullptr);
  EXPECT_EQ(backend_->load_packed({&part, 1}, {kept.data(), size + 64}), nullptr);
  EXPECT_EQ(backend_->load_packed({&part, 1}, {kept.data() + 4, size}), nullptr);
  EXPECT_EQ(backend_->load_packed({&part, 1}, {}), nullptr);
}

TEST_P(MatmulTest, RefusesWrongShapes) {
  Random random(9);
  HostMatrix w(DType::f32, 8, 16, random);
  const Tensor part = w.tensor();
  const auto weight = backend_->load_weight({&part, 1});
  Floats x = random.normal(32);
  Floats out = poison(64);
  EXPECT_THROW(backend_->matmul(matrix(x, 1, 17), *weight, nullptr, matrix(out, 1, 8)), std::invalid_argument);
  EXPECT_THROW(backend_->matmul(matrix(x, 2, 16), *weight, nullptr, matrix(out, 1, 8)), std::invalid_argument);
  const std::vector<std::int32_t> tokens = {8};
  EXPECT_THROW(backend_->embed(*weight, tokens, matrix(out, 1, 16)), std::invalid_argument);
  const Tensor other = Tensor::of(out.data(), DType::f32, {2, 15});
  const Tensor parts[] = {part, other};
  EXPECT_THROW(static_cast<void>(backend_->load_weight(parts)), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, MatmulTest, ::testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace fixpoint::kernels
