// The arrows of docs/architecture.md, read off every #include.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = FIXPOINT_SOURCE_DIR;

/// What each folder may include besides itself.
const std::map<std::string, std::set<std::string>> kAllowed{
    {"kernels", {}},
    {"engine", {"kernels"}},
    {"sandbox", {}},
    {"agent", {"engine", "kernels", "sandbox"}},
    {"server", {"agent", "engine", "kernels", "sandbox"}},
    {"evals", {"agent", "engine", "kernels", "sandbox"}},
    {"cli", {"server", "evals", "agent", "engine", "kernels", "sandbox"}},
};

struct Include {
  fs::path file;
  std::string target;
  bool quoted = false;  ///< "…": a file of this repository
};

std::vector<Include> includes_of(const std::string& folder) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    std::ifstream in(entry.path());
    std::string line;
    for (std::smatch match; std::getline(in, line);) {
      if (std::regex_search(line, match, pattern)) found.push_back({entry.path(), match[2], match[1] == "\""});
    }
  }
  return found;
}

bool is_public_header(const fs::path& file) {
  return file.extension() == ".h" && file.parent_path().parent_path() == kRoot;
}

class LayeringTest : public testing::TestWithParam<std::string> {};

TEST_P(LayeringTest, IncludesFollowTheArrows) {
  const auto& allowed = kAllowed.at(GetParam());
  for (const auto& [file, target, quoted] : includes_of(GetParam())) {
    const auto folder = target.substr(0, target.find('/'));
    const bool ours = quoted || kAllowed.contains(folder) || folder == "tests" || folder == "models";
    if (!ours) continue;  // of the system or of a library
    EXPECT_TRUE(folder == GetParam() || allowed.contains(folder)) << file << " includes \"" << target << "\"";
  }
}

TEST_P(LayeringTest, NobodyReachesIntoAnotherFoldersPrivateCode) {
  for (const auto& [file, target, quoted] : includes_of(GetParam())) {
    const auto folder = target.substr(0, target.find('/'));
    if (!kAllowed.contains(folder) || folder == GetParam()) continue;
    EXPECT_EQ(target.find("/detail/"), std::string::npos) << file << " includes \"" << target << "\"";
  }
}

TEST_P(LayeringTest, CoreHeadersAreFreeOfBoostAndJson) {
  if (GetParam() != "kernels" && GetParam() != "engine" && GetParam() != "sandbox") {
    return;  // the rule is about the three core folders
  }
  for (const auto& [file, target, quoted] : includes_of(GetParam())) {
    EXPECT_FALSE(target.starts_with("boost/")) << file;
    if (is_public_header(file)) {
      EXPECT_FALSE(target.starts_with("nlohmann/")) << file;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, LayeringTest,
                         testing::Values("kernels", "engine", "sandbox", "agent", "server", "evals", "cli"),
                         [](const auto& folder) { return folder.param; });

}  // namespace
