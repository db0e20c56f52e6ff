#pragma once

#include <span>
#include <string_view>
#include <tl/expected.hpp>

#include "evals/benchmark.h"
#include "evals/detail/rows.h"

/// One file a format. `recognises_*` looks at a file's first row; `load_*` turns all rows into tasks and names the
/// benchmark.
namespace fixpoint::evals::datasets {

using Rows = std::span<const detail::Row>;
using Loaded = tl::expected<Benchmark, DataError>;

struct Format {
  std::string_view name;
  bool (*recognises)(const detail::Row& row);
  Loaded (*load)(Rows rows);
};

bool recognises_humaneval(const detail::Row& row);
Loaded load_humaneval(Rows rows);
bool recognises_mbpp(const detail::Row& row);
Loaded load_mbpp(Rows rows);
bool recognises_evalplus(const detail::Row& row);
Loaded load_evalplus(Rows rows);
bool recognises_multipl_e(const detail::Row& row);
Loaded load_multipl_e(Rows rows);
bool recognises_livecodebench(const detail::Row& row);
Loaded load_livecodebench(Rows rows);
bool recognises_apps(const detail::Row& row);
Loaded load_apps(Rows rows);
bool recognises_code_contests(const detail::Row& row);
Loaded load_code_contests(Rows rows);
bool recognises_family(const detail::Row& row);
Loaded load_family(Rows rows);
bool recognises_ldb(const detail::Row& row);
Loaded load_ldb(Rows rows);

/// The tests of {"inputs": […], "outputs": […], "fn_name"?: NAME} (APPS and what grew out of it); sets the entry point.
[[nodiscard]] tl::expected<Tests, std::string> tests_of_input_output(const sandbox::Value& value, std::string& entry_point);

/// What such programs may use without importing it, as the LiveCodeBench checker gives it to them.
[[nodiscard]] std::string_view contest_prelude();

}  // namespace fixpoint::evals::datasets
