#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"

namespace fixpoint::cli_tests {

struct Ran {
  int code = -1;  ///< exit status; -1: a signal ended it
  std::string out;
  std::string err;
  /// The last line of `out`, as JSON.
  [[nodiscard]] nlohmann::json json() const;
};

/// A folder with a tiny model, and the program to run.
class ProgramTest : public ::testing::Test {
 protected:
  /// Runs `fixpoint ARGUMENTS…` to its end. `out` is where its stdout goes: kept where empty.
  [[nodiscard]] Ran run(const std::vector<std::string>& arguments, const std::string& out = {}) const;
  /// The same on a terminal, which shows stdout and stderr alike: all in `out`. Where `interrupt_at` is not empty, Ctrl-C is
  /// pressed once when it has appeared.
  [[nodiscard]] Ran on_terminal(const std::vector<std::string>& arguments, const std::string& interrupt_at = {}) const;
  /// The same with "-m MODEL --threads 1 --kv-memory 8M" after the command's name.
  [[nodiscard]] Ran with_model(std::vector<std::string> arguments, const std::string& out = {}) const;

  /// Written at the first call.
  [[nodiscard]] std::string model() const;
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return directory_.path() / name; }

 private:
  test_models::TemporaryDirectory directory_;
};

[[nodiscard]] std::string content_of(const std::filesystem::path& file);
void write(const std::filesystem::path& file, const std::string& content);

}  // namespace fixpoint::cli_tests
