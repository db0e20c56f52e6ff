#pragma once

#include <string>

namespace fixpoint::cli {

/// "0.1.0".
[[nodiscard]] std::string version();
/// Of the source tree when it was built, twelve digits; empty where it was no repository.
[[nodiscard]] std::string source_commit();
/// models/ in the source tree: where the task family's benchmark and the small model are until they are installed.
[[nodiscard]] std::string models_in_source();

}  // namespace fixpoint::cli
