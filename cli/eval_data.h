#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>

namespace fixpoint::cli {

/// $FIXPOINT_DATA, else $XDG_DATA_HOME/fixpoint/benchmarks, else ~/.local/share/fixpoint/benchmarks.
[[nodiscard]] std::filesystem::path default_data_folder();

/// The file of a benchmark (for the task family the one that came with the program): `data` where it is a file, else the published file of that name below the folder `data` (or
/// the default one).
[[nodiscard]] tl::expected<std::filesystem::path, std::string> benchmark_file(const std::string& benchmark, const std::string& data);

/// Where this program's own data lies: share/fixpoint beside the folder of the executable, else the source tree's models/.
[[nodiscard]] std::filesystem::path own_data_folder();

/// "Linux 6.1, 2 × Intel Xeon…, 24 GiB"
[[nodiscard]] std::string machine_name();

}  // namespace fixpoint::cli
