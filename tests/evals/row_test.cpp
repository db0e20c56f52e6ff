#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evals/detail/pickle.h"
#include "evals/detail/rows.h"

namespace fixpoint::evals::detail {
namespace {

TEST(RowTest, LinesAreSplitAtNewlinesOnly) {
  const std::string file = "f";
  // U+2028 and U+0085 end a line for Python's splitlines, not for JSON lines.
  const auto rows = parse_rows("{\"a\":\"x\xE2\x80\xA8y\xC2\x85z\"}\r\n{\"a\":\"\\u0000\"}", file);
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].text("a").value(), "x\xE2\x80\xA8y\xC2\x85z");
  EXPECT_EQ((*rows)[1].text("a").value(), std::string(1, '\0'));
}

TEST(RowTest, ARepeatedMembersLastValueCounts) {
  const std::string file = "f";
  EXPECT_EQ(parse_rows(R"({"a":"1","a":"2"})", file)->front().text("a").value(), "2");
}

TEST(RowTest, Base64RefusesOtherCharacters) {
  EXPECT_EQ(decode_base64("aGk=").value(), "hi");
  EXPECT_EQ(decode_base64("aGkh").value(), "hi!");
  EXPECT_FALSE(decode_base64("a$k="));
  EXPECT_FALSE(decode_base64("aG=k"));
}

TEST(RowTest, CompressedDataThatEndsEarlyIsAnError) {
  EXPECT_EQ(inflate_zlib("\x78\x9c\xcb\xc8\x04\x00\x01\x3b\x00\xd2").error().find("is not whole"), 0u);
  EXPECT_FALSE(inflate_zlib("\x78\x9c\xcb"));
}

TEST(PickleTest, ReadsOneTextOrADictOfTexts) {
  using namespace std::string_literals;
  EXPECT_EQ(read_pickled_text("\x80\x04\x8c\x02hi\x94."s)->text, "hi");
  EXPECT_EQ(read_pickled_text("\x80\x03}q\x00X\x01\x00\x00\x00kX\x01\x00\x00\x00vs."s)->members.at("k"), "v");
  EXPECT_EQ(read_pickled_text("\x80\x04}\x94(\x8c\x01k\x94\x8c\x01v\x94\x8c\x01l\x94\x8c\x01w\x94u."s)->members.at("l"), "w");
}

TEST(PickleTest, RefusesEverythingThatCouldRun) {
  using namespace std::string_literals;
  EXPECT_THAT(read_pickled_text("cos\nsystem\n(S'true'\ntR."s).error(), testing::HasSubstr("opcode 99"));
  EXPECT_THAT(read_pickled_text("\x80\x04\x8c\x02os\x8c\x06system\x93."s).error(), testing::HasSubstr("opcode 147"));
  EXPECT_FALSE(read_pickled_text("\x80\x04\x8c\xffhi"s));
  EXPECT_FALSE(read_pickled_text(""));
  EXPECT_FALSE(read_pickled_text("u."));
  EXPECT_FALSE(read_pickled_text("s."));
}

}  // namespace
}  // namespace fixpoint::evals::detail
