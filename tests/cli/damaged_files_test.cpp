#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "tests/cli/program.h"

namespace fixpoint::cli_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DamagedFilesTest : public ProgramTest {
 protected:
  /// Both commands that read the whole file fail with 1 and one line that names the file and `what`.
  void expect_refused(const std::string& path, const std::string& what) const {
    for (const Ran& ran : {run({"model", "info", path, "--threads", "1"}), run({"generate", "-m", path, "-p", "x", "--threads", "1"})}) {
      EXPECT_EQ(ran.code, 1);
      EXPECT_EQ(ran.out, "");
      EXPECT_THAT(ran.err, AllOf(HasSubstr(path), HasSubstr(what)));
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    }
  }
  /// The model with `from` overwritten by `to`, of the same length.
  [[nodiscard]] std::string patched(const std::string& from, const std::string& to) const {
    std::string bytes = content_of(model());
    const auto place = bytes.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    if (place != std::string::npos) bytes.replace(place, from.size(), to);
    write(file("damaged.gguf"), bytes);
    return file("damaged.gguf").string();
  }
};

TEST_F(DamagedFilesTest, ATruncatedFileNamesTheTensor) {
  const std::string bytes = content_of(model());
  write(file("damaged.gguf"), bytes.substr(0, bytes.size() - 5000));
  expect_refused(file("damaged.gguf").string(), "tensor 'blk.");
  write(file("damaged.gguf"), bytes.substr(0, 100));
  expect_refused(file("damaged.gguf").string(), "offset ");
}

TEST_F(DamagedFilesTest, WhatIsNoModelIsTold) {
  write(file("text.gguf"), "This is a text, and long enough to be looked at as a header.");
  expect_refused(file("text.gguf").string(), "GGUF");
  write(file("empty.gguf"), "");
  expect_refused(file("empty.gguf").string(), "");
}

TEST_F(DamagedFilesTest, AMissingFieldOrTensorIsNamed) {
  expect_refused(patched("llama.block_count", "llama.block_bount"), "llama.block_count");
  expect_refused(patched("blk.1.ffn_up.weight", "blk.1.ffn_UP.weight"), "blk.1.ffn_up.weight");
}

TEST_F(DamagedFilesTest, AFoldersBadFieldIsNamedWithItsFile) {
  const auto folder = file("folder");
  test_models::write_random_model(folder, {.format = test_models::ModelFormat::safetensors});
  const auto config = folder / "config.json";
  auto fields = nlohmann::json::parse(content_of(config));
  fields["hidden_size"] = -4;
  write(config, fields.dump());
  const Ran ran = run({"model", "info", folder.string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(config.string()), HasSubstr("hidden_size")));
  std::filesystem::remove(config);
  EXPECT_THAT(run({"model", "info", folder.string()}).err, HasSubstr("config.json"));
}

}  // namespace
}  // namespace fixpoint::cli_tests
