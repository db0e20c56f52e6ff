#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>

namespace fixpoint::cli {

/// $FIXPOINT_DATA, else $XDG_DATA_HOME/fixpoint/benchmarks, else ~/.local/share/fixpoint/benchmarks.
[[nodiscard]] std::filesystem::path default_data_folder();

/// The file of a benchmark: `data` where it is a file, else the published file of that name below the folder `data` (or
/// the default one).
[[nodiscard]] tl::expected<std::filesystem::path, std::string> benchmark_file(const std::string& benchmark, const std::string& data);

/// "Linux 6.1, 2 × Intel Xeon…, 24 GiB"
[[nodiscard]] std::string machine_name();

}  // namespace fixpoint::cli
