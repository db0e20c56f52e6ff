#include "engine/detail/normalise.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/detail/unicode.h"
#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

std::string utf8(std::initializer_list<char32_t> codes) {
  std::string out;
  for (const char32_t code : codes) append_utf8(out, code);
  return out;
}

TEST(NormaliseTest, TextInNfcIsNotCopied) {
  std::string storage;
  const std::string_view text = "plain é 世界 \xFF";
  EXPECT_EQ(to_nfc(text, storage).data(), text.data());
}

TEST(NormaliseTest, EveryPairThatComposesDoesAndNoOther) {
  for (const Decomposition& entry : kDecompositions) {
    const std::string composed = utf8({entry.composed});
    const std::string parts = entry.second != 0 ? utf8({entry.first, entry.second}) : utf8({entry.first});
    EXPECT_EQ(nfc(parts), nfc(composed));
    if (entry.composes) {
      EXPECT_EQ(nfc(composed), composed);
    } else {
      EXPECT_NE(nfc(composed), composed);
    }
  }
}

TEST(NormaliseTest, MarksAreOrderedByClass) {
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("e\u0323\u0301"), "\u1EB9\u0301");
  EXPECT_EQ(nfc("\u0301\u0316x"), "\u0316\u0301x");
}

TEST(NormaliseTest, AMarkBehindOneOfItsClassDoesNotCompose) {
  EXPECT_EQ(nfc("a\u0302\u0301"), "\u1EA5");           // â + acute: a composed form exists
  EXPECT_EQ(nfc("a\u0308\u0301"), "\u00E4\u0301");     // ä + acute: none does
  EXPECT_EQ(nfc("a\u030B\u0301"), "a\u030B\u0301");    // the double acute is in the way
}

TEST(NormaliseTest, HangulComposesByArithmetic) {
  EXPECT_EQ(nfc("\u1112\u1161\u11AB\u1100\u116E\u11A8"), "한국");
  EXPECT_EQ(nfc("가\u11A8"), "각");
  EXPECT_EQ(nfc("각\u11A8"), "각\u11A8");
}

TEST(NormaliseTest, SingletonsAndExclusionsDecompose) {
  EXPECT_EQ(nfc("\u212B\u2126"), "ÅΩ");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");
}

TEST(NormaliseTest, BytesThatAreNotTextStay) {
  EXPECT_EQ(nfc("e\xFF\u0301\xC3"), "e\xFF\u0301\xC3");
  EXPECT_EQ(nfc("\xFF"
                "e\u0301\xE2\x82"),
            "\xFF"
            "é\xE2\x82");
}

TEST(NormaliseTest, DoingItTwiceChangesNothing) {
  std::mt19937 random(5);
  const std::vector<char32_t> codes{'a', 'e', 'q', 0x301, 0x302, 0x308, 0x316, 0x323, 0x30A, 0xC5, 0x212B, 0x1100, 0x1161,
                                    0x11A8, 0xAC00, 0x915, 0x93C, 0x958, 0x1E9B, 0x4E16, 0x1F984, 0x345, 0x3B1, 0x313};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (auto left = random() % 10; left > 0; --left) append_utf8(text, codes[random() % codes.size()]);
    const std::string once = nfc(text);
    ASSERT_EQ(nfc(once), once) << text;
    // Nothing composes with an ideograph, so what stands on its two sides is independent.
    ASSERT_EQ(nfc(text + "世" + text), once + "世" + once);
  }
}

// Sorting marks by insertion would take the square of their number.
TEST(NormaliseTest, AMegabyteOfMarksOutOfOrderIsSorted) {
  std::string text = "a";
  for (int i = 0; i < 250000; ++i) text += i % 2 == 0 ? "\u0334" : "\u0316";
  std::string ordered = "a";
  for (int i = 0; i < 250000; ++i) ordered += i < 125000 ? "\u0334" : "\u0316";
  EXPECT_EQ(nfc(text), ordered);
}

}  // namespace
}  // namespace fixpoint::engine::detail
