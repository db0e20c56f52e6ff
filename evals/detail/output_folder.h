#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "evals/detail/canonical_outputs.h"

namespace fixpoint::evals::detail {

/// Canonical solutions' outputs, kept between runs: a file for each task, named by the hash of all that they depend on. Whoever may
/// write there can say what is right, as in the benchmark's own file. Thread-safe; several processes may share a folder.
class OutputFolder {
 public:
  /// `interpreter`: what names the one that runs them.
  OutputFolder(std::filesystem::path folder, std::string interpreter) : folder_(std::move(folder)), interpreter_(std::move(interpreter)) {}

  /// Nothing where they are not there, or damaged.
  [[nodiscard]] std::optional<CanonicalOutputs> find(const Task& task, const Differential& tests) const;
  /// What is too large to be read again is not kept. An error names the file.
  [[nodiscard]] tl::expected<void, std::string> keep(const Task& task, const Differential& tests, const CanonicalOutputs& outputs) const;

 private:
  [[nodiscard]] std::filesystem::path file_of(const Task& task, const Differential& tests) const;

  std::filesystem::path folder_;
  std::string interpreter_;
};

}  // namespace fixpoint::evals::detail
