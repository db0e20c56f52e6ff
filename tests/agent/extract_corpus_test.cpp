// The golden corpus: each file holds a model's answer and what has to be found in it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/extract.h"

namespace fixpoint::agent {
namespace {

struct Case {
  std::string name, kind, language, entry, header, text, program, explanation;
};

std::string between(const std::string& file, const std::string& begin, const std::string& end) {
  const std::size_t from = file.find(begin);
  const std::size_t to = file.find(end, from + begin.size());
  if (from == std::string::npos || to == std::string::npos) throw std::runtime_error("no " + begin);
  return file.substr(from + begin.size(), to - from - begin.size());
}

std::vector<Case> cases() {
  std::vector<Case> found;
  for (const auto& entry : std::filesystem::directory_iterator(FIXPOINT_EXTRACT_CORPUS)) {
    if (entry.path().extension() != ".case") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(in), {});
    found.push_back({.name = entry.path().stem().string(),
                     .kind = between(file, "kind: ", "\n"),
                     .language = between(file, "language: ", "\n"),
                     .entry = between(file, "entry: ", "\n"),
                     .header = between(file, "header: ", "\n"),
                     .text = between(file, "=====text\n", "\n=====program\n"),
                     .program = between(file, "=====program\n", "\n=====explanation\n"),
                     .explanation = between(file, "=====explanation\n", "\n=====end\n")});
  }
  return found;
}

TEST(ExtractCorpusTest, FindsInEachAnswerWhatPeopleWould) {
  const std::vector<Case> all = cases();
  EXPECT_GE(all.size(), 35U);
  for (const Case& it : all) {
    const Extracted found = extract(it.text, it.language, it.entry, it.header);
    EXPECT_EQ(to_string(found.kind), it.kind) << it.name;
    EXPECT_EQ(found.program, it.program) << it.name;
    EXPECT_EQ(found.explanation, it.explanation) << it.name;
  }
}

}  // namespace
}  // namespace fixpoint::agent
