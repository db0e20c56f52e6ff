#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kernel_table.h"
#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

// The error of the vectorised exponential, in units in the last place of the exact result.
double worst_exp_error(const cpu::KernelTable& table) {
  Floats x;
  for (float v = -86.9F; v < 88.0F; v += 0.00137F) x.push_back(v);
  Floats out = poison(static_cast<std::int64_t>(x.size()));
  table.exp(x.data(), out.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    const auto rounded = static_cast<float>(exact);
    const double ulp = static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) - static_cast<double>(rounded);
    worst = std::max(worst, std::fabs(static_cast<double>(out[i]) - exact) / ulp);
  }
  return worst;
}

TEST(ExpTest, IsWithinTwoUnitsAndExactAtTheEnds) {
  std::vector<cpu::KernelTable> tables{cpu::portable_kernels()};
  if (cpu::cpu_features().avx2) tables.push_back(cpu::avx2_kernels());
  if (cpu::cpu_features().avx512) tables.push_back(cpu::avx512_kernels());
  for (const cpu::KernelTable& table : tables) {
    EXPECT_LT(worst_exp_error(table), 2.0) << table.name;
    const float ends[] = {0.0F, -INFINITY, -1e30F, -88.0F};
    float out[4];
    table.exp(ends, out, 4);
    EXPECT_EQ(out[0], 1.0F) << table.name;
    for (int i = 1; i < 4; ++i) EXPECT_EQ(out[i], 0.0F) << table.name;
  }
}

}  // namespace
}  // namespace fixpoint::kernels
