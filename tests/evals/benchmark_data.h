#pragma once

#include <filesystem>
#include <string_view>

namespace fixpoint::evals {

inline std::filesystem::path benchmark_data(std::string_view name) {
  return std::filesystem::path(FIXPOINT_BENCHMARK_DATA) / "benchmarks" / name;
}

}  // namespace fixpoint::evals

/// Skips a test whose data file is not on this machine.
#define REQUIRE_BENCHMARK_DATA(name)                                   \
  if (!std::filesystem::exists(fixpoint::evals::benchmark_data(name))) \
  GTEST_SKIP() << "the benchmark file " << fixpoint::evals::benchmark_data(name) << " is not here"
