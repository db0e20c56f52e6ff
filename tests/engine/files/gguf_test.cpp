#include "engine/detail/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/engine/models/gguf_writer.h"

namespace fixpoint::engine::detail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test_models::GgufWriter;
using Kind = LoadError::Kind;

constexpr std::uint32_t kF32 = 0, kQ2K = 10, kQ4K = 12;

std::vector<std::byte> zeros(std::size_t n) { return std::vector<std::byte>(n); }

/// The parse error of `bytes`; fails the test where there is none.
LoadError error_of(const std::vector<std::byte>& bytes) {
  const auto parsed = parse_gguf(bytes, "model.gguf");
  EXPECT_FALSE(parsed.has_value());
  return parsed ? LoadError{} : parsed.error();
}

template <class T>
void patch(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

GgufWriter small_file() {
  GgufWriter w;
  w.text("general.architecture", "llama");
  w.u32("llama.block_count", 2);
  const std::array<std::uint64_t, 2> dims{4, 3};
  w.tensor("a.weight", kF32, dims, zeros(48));
  w.tensor("b.weight", kF32, dims, zeros(48));
  return w;
}

TEST(GgufTest, ReadsMetadataAndTensorsOfBothVersions) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufWriter w(version);
    w.text("name", "x");
    w.f32("ratio", 0.5F);
    w.boolean("flag", true);
    w.strings("list", std::vector<std::string>{"a", "", "bc"});
    w.floats("floats", std::array{1.0F, 2.0F});
    w.i32s("numbers", std::array{-1, 7});
    w.tensor("t", kF32, std::array<std::uint64_t, 2>{4, 3}, zeros(48));
    const auto bytes = w.bytes();
    const auto gguf = parse_gguf(bytes, "f");
    ASSERT_TRUE(gguf) << gguf.error().message();
    EXPECT_EQ(gguf->version, version);
    EXPECT_EQ(std::get<std::string_view>(*gguf->find("name")), "x");
    EXPECT_EQ(std::get<double>(*gguf->find("ratio")), 0.5);
    EXPECT_TRUE(std::get<bool>(*gguf->find("flag")));
    EXPECT_THAT(strings_of(std::get<GgufArray>(*gguf->find("list"))), ElementsAre("a", "", "bc"));
    EXPECT_THAT(floats_of(std::get<GgufArray>(*gguf->find("floats"))), ElementsAre(1.0F, 2.0F));
    EXPECT_THAT(integers_of(std::get<GgufArray>(*gguf->find("numbers"))), ElementsAre(-1, 7));
    EXPECT_EQ(gguf->find("absent"), nullptr);
    ASSERT_EQ(gguf->tensors.size(), 1U);
    EXPECT_EQ(gguf->tensors[0].shape, (kernels::Shape{3, 4}));
    EXPECT_EQ(gguf->tensors[0].bytes, 48U);
    EXPECT_EQ(gguf->tensors[0].offset % 32, 0U);
  }
}

TEST(GgufTest, EveryTruncationIsAnErrorThatNamesAPlace) {
  const auto whole = small_file().bytes();
  ASSERT_TRUE(parse_gguf(whole, "f"));
  const std::size_t data_end = whole.size() - 16;  // the last tensor ends before its padding
  for (std::size_t size = 0; size < data_end; ++size) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto error = error_of(part);
    EXPECT_FALSE(error.where.empty()) << size;
    EXPECT_EQ(error.file, "model.gguf") << size;
  }
}

TEST(GgufTest, NamesTheWrongMagicAndVersion) {
  auto bytes = small_file().bytes();
  patch(bytes, 4, std::uint32_t{1});
  EXPECT_THAT(error_of(bytes).message(), HasSubstr("GGUF v1 is not supported"));
  EXPECT_EQ(error_of(bytes).where, "offset 4");
  patch(bytes, 0, std::uint32_t{0x04034B50});
  EXPECT_THAT(error_of(bytes).message(), HasSubstr("does not begin with 'GGUF'"));
  EXPECT_EQ(error_of(bytes).where, "offset 0");
}

TEST(GgufTest, NamesABigEndianFile) {
  auto bytes = small_file().bytes();
  patch(bytes, 4, std::uint32_t{0x03000000});
  const auto error = error_of(bytes);
  EXPECT_EQ(error.kind, Kind::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("big-endian (GGUF v3)"));
  EXPECT_EQ(error.where, "offset 4");
  patch(bytes, 0, std::uint32_t{0x47475546});
  EXPECT_THAT(error_of(bytes).message(), HasSubstr("big-endian (GGUF v3)"));
  EXPECT_EQ(error_of(bytes).where, "offset 0");
}

TEST(GgufTest, AbsurdCountsAreRefusedBeforeAnythingIsAllocated) {
  for (const std::size_t offset : {std::size_t{8}, std::size_t{16}}) {  // tensors, metadata pairs
    for (const std::uint64_t count : {~std::uint64_t{0}, std::uint64_t{1} << 62, std::uint64_t{100000}}) {
      auto bytes = small_file().bytes();
      patch(bytes, offset, count);
      EXPECT_EQ(error_of(bytes).kind, Kind::malformed) << offset << " " << count;
    }
  }
}

TEST(GgufTest, AbsurdStringAndArrayLengthsAreRefused) {
  auto bytes = small_file().bytes();
  patch(bytes, 24, ~std::uint64_t{0} - 7);  // the first key's length
  EXPECT_THAT(error_of(bytes).message(), AllOf(HasSubstr("offset 32"), HasSubstr("metadata key takes")));

  for (const std::uint32_t type : {0U, 6U, 8U, 12U}) {
    for (const std::uint64_t count : {~std::uint64_t{0}, std::uint64_t{1} << 61, std::uint64_t{1000}}) {
      std::vector<std::byte> value(12);
      patch(value, 0, type);
      patch(value, 4, count);
      GgufWriter w;
      w.raw("list", 9, value);
      EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("'list'")) << type << " " << count;
    }
  }
}

TEST(GgufTest, NestedArraysAndUnknownTypesAreRefusedByName) {
  std::vector<std::byte> nested(12);
  patch(nested, 0, std::uint32_t{9});
  patch(nested, 4, std::uint64_t{1});
  GgufWriter w;
  w.raw("deep", 9, nested);
  EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("array 'deep': arrays inside arrays"));

  GgufWriter u;
  u.raw("odd", 13, zeros(8));
  EXPECT_THAT(error_of(u.bytes()).message(), HasSubstr("'odd': unknown value type 13"));
}

TEST(GgufTest, DuplicatesAreRefusedByName) {
  GgufWriter w;
  w.u32("twin", 1);
  w.u32("twin", 2);
  EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("'twin' is there twice"));

  auto t = small_file();
  t.tensor("a.weight", kF32, std::array<std::uint64_t, 1>{4}, zeros(16));
  EXPECT_THAT(error_of(t.bytes()).message(), HasSubstr("'a.weight' is there twice"));
}

TEST(GgufTest, OverlappingTensorsAreRefusedByName) {
  auto w = small_file();
  w.entry("c.weight", kF32, std::array<std::uint64_t, 1>{4}, 32);  // inside a.weight's 48 bytes
  EXPECT_THAT(error_of(w.bytes()).message(), AllOf(HasSubstr("'c.weight'"), HasSubstr("inside tensor 'a.weight'")));
}

TEST(GgufTest, OffsetsPastTheEndAndMisalignedOnesAreRefused) {
  for (const std::uint64_t offset : {std::uint64_t{1} << 40, ~std::uint64_t{31}, std::uint64_t{96}}) {
    auto w = small_file();
    w.entry("c.weight", kF32, std::array<std::uint64_t, 1>{1024}, offset);
    EXPECT_THAT(error_of(w.bytes()).message(), AllOf(HasSubstr("'c.weight'"), HasSubstr("past the file's data"))) << offset;
  }
  auto w = small_file();
  w.entry("c.weight", kF32, std::array<std::uint64_t, 1>{4}, 112 + 4);
  EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("no multiple of 32"));
}

TEST(GgufTest, DimensionsThatOverflowAreRefused) {
  const std::array<std::uint64_t, 4> huge{std::uint64_t{1} << 32, std::uint64_t{1} << 32, 2, 2};
  const std::array<std::uint64_t, 4> zero{4, 0, 1, 1};
  for (const auto& dims : {huge, zero}) {
    GgufWriter w;
    w.entry("t", kF32, dims, 0);
    EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("tensor 't': dimension 1")) << dims[0];
  }
  GgufWriter w;
  w.entry("t", kF32, std::array<std::uint64_t, 5>{1, 1, 1, 1, 1}, 0);
  EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("5 dimensions"));
}

TEST(GgufTest, UnsupportedTypesAndPartialBlocksAreRefusedByName) {
  GgufWriter w;
  w.entry("t", kQ2K, std::array<std::uint64_t, 1>{256}, 0);
  EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("tensor 't': type Q2_K is not supported"));
  GgufWriter u;
  u.entry("t", 77, std::array<std::uint64_t, 1>{256}, 0);
  EXPECT_THAT(error_of(u.bytes()).message(), HasSubstr("tensor 't': unknown type 77"));
  GgufWriter p;
  p.entry("t", kQ4K, std::array<std::uint64_t, 1>{300}, 0);
  EXPECT_THAT(error_of(p.bytes()).message(), HasSubstr("rows of 300 elements are no whole number of Q4_K blocks"));
}

TEST(GgufTest, AlignmentMustBeAPowerOfTwo) {
  for (const std::uint32_t alignment : {0U, 3U, 4U, 1U << 30}) {
    GgufWriter w;
    w.u32("general.alignment", alignment);
    EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("'general.alignment'")) << alignment;
  }
  GgufWriter w(3, 64);
  w.u32("general.alignment", 64);
  w.tensor("t", kF32, std::array<std::uint64_t, 1>{4}, zeros(16));
  const auto bytes = w.bytes();
  ASSERT_TRUE(parse_gguf(bytes, "f"));
}

TEST(GgufTest, MessagesShowNoControlCharacters) {
  GgufWriter w;
  w.entry("a\x1b[31m\n", 77, std::array<std::uint64_t, 1>{256}, 0);
  EXPECT_THAT(error_of(w.bytes()).message(), HasSubstr("'a\\x1b[31m\\x0a'"));
}

}  // namespace
}  // namespace fixpoint::engine::detail
