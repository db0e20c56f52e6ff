#include "agent/diff.h"

#include <gtest/gtest.h>

#include <random>

namespace fixpoint::agent {
namespace {

TEST(DiffTest, EqualTextsHaveNone) { EXPECT_TRUE(diff_lines("a\nb\n", "a\nb\n").empty()); }

TEST(DiffTest, ShowsAChangeWithItsSurroundings) {
  EXPECT_EQ(to_text(diff_lines("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n", 1)), "...\n 4\n-5\n+five\n 6\n...\n");
}

TEST(DiffTest, AnythingToOrFromNothing) {
  EXPECT_EQ(to_text(diff_lines("", "a\nb\n")), "+a\n+b\n");
  EXPECT_EQ(to_text(diff_lines("a\n", "")), "-a\n");
}

TEST(DiffTest, AppliedToTheOldTextGivesTheNew) {
  std::mt19937 random(1);
  for (int n = 0; n < 500; ++n) {
    std::string a, b;
    for (int i = 0; i < static_cast<int>(random() % 12); ++i) a += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    for (int i = 0; i < static_cast<int>(random() % 12); ++i) b += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    std::string before, after;
    for (const DiffLine& line : diff_lines(a, b, 1'000)) {
      ASSERT_NE(line.kind, DiffLine::Kind::gap);
      if (line.kind != DiffLine::Kind::added) before += line.text + "\n";
      if (line.kind != DiffLine::Kind::removed) after += line.text + "\n";
    }
    if (a == b) continue;
    EXPECT_EQ(before, a);
    EXPECT_EQ(after, b);
  }
}

TEST(DiffTest, VeryLongTextsDoNotNeedMuchMemory) {
  std::string a, b;
  for (int i = 0; i < 20'000; ++i) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(diff_lines(a, b).size(), 40'000U);
}

}  // namespace
}  // namespace fixpoint::agent
