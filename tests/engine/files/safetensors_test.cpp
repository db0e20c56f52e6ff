#include "engine/detail/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace fixpoint::engine::detail {
namespace {

using ::testing::HasSubstr;
using Kind = LoadError::Kind;

std::vector<std::byte> file_of(std::string header, std::size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  std::vector<std::byte> out(sizeof length + header.size() + data_bytes);
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + sizeof length, header.data(), header.size());
  return out;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  const auto parsed = parse_safetensors(bytes, "m.safetensors");
  EXPECT_FALSE(parsed.has_value());
  return parsed ? "" : parsed.error().message();
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  std::string text = "\"";
  text.append(name).append(R"(":{"dtype":")").append(dtype).append(R"(","shape":)").append(shape);
  return text.append(R"(,"data_offsets":)").append(offsets).append("}");
}

std::string object(std::initializer_list<std::string> entries) {
  std::string text = "{";
  for (const auto& e : entries) text.append(text.size() > 1 ? "," : "").append(e);
  return text.append("}");
}

TEST(SafetensorsTest, ReadsTensorsInTheOrderOfTheirData) {
  const auto bytes = file_of(object({entry("b", "BF16", "[2,3]", "[16,28]"), entry("a", "F32", "[4]", "[0,16]"),
                                     R"("__metadata__":{"format":"pt"})"}),
                             28);
  const auto tensors = parse_safetensors(bytes, "f");
  ASSERT_TRUE(tensors) << tensors.error().message();
  ASSERT_EQ(tensors->size(), 2U);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].dtype, kernels::DType::bf16);
  EXPECT_EQ((*tensors)[1].shape, (kernels::Shape{2, 3}));
  EXPECT_EQ((*tensors)[1].offset, bytes.size() - 12);
}

TEST(SafetensorsTest, EveryTruncationIsAnError) {
  const auto whole = file_of(object({entry("a", "F32", "[4]", "[0,16]")}), 16);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(error_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), HasSubstr("m.safetensors: ")) << size;
  }
}

TEST(SafetensorsTest, HeadersThatAreTooLongOrNoJsonAreRefused) {
  auto bytes = file_of("{}", 0);
  const std::uint64_t huge = ~std::uint64_t{0};
  std::memcpy(bytes.data(), &huge, sizeof huge);
  EXPECT_THAT(error_of(bytes), HasSubstr("offset 0: no safetensors file"));
  EXPECT_THAT(error_of(file_of("{\"a\":", 0)), HasSubstr("is no valid JSON"));
  EXPECT_THAT(error_of(file_of("[1]", 0)), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of(file_of(std::string(100000, '['), 0)), HasSubstr("is no valid JSON"));
}

TEST(SafetensorsTest, HolesOverlapsAndLeftoversAreRefused) {
  const auto a = entry("a", "F32", "[4]", "[0,16]");
  EXPECT_THAT(error_of(file_of(object({a, entry("b", "F32", "[4]", "[8,24]")}), 24)),
              HasSubstr("tensor 'b': begins at data offset 8, the tensor before it ends at 16"));
  EXPECT_THAT(error_of(file_of(object({a, entry("b", "F32", "[4]", "[20,36]")}), 36)), HasSubstr("tensor 'b'"));
  EXPECT_THAT(error_of(file_of(object({a}), 20)), HasSubstr("4 bytes belong to no tensor"));
  EXPECT_THAT(error_of(file_of(object({entry("a", "F32", "[4]", "[0,16]")}), 12)), HasSubstr("end past the file's data"));
}

TEST(SafetensorsTest, DuplicatesAndWrongEntriesAreRefusedByName) {
  const auto a = entry("a", "F32", "[4]", "[0,16]");
  EXPECT_THAT(error_of(file_of(object({a, a}), 16)), HasSubstr("key 'a': is there twice"));
  EXPECT_THAT(error_of(file_of(object({entry("a", "F8_E4M3", "[16]", "[0,16]")}), 16)),
              HasSubstr("tensor 'a': type 'F8_E4M3' is not supported"));
  for (const char* shape : {"[0]", "[-4]", "[4.0]", "[1,1,1,1,4]", "4", "[4294967296,4294967296,4]", "[\"4\"]"}) {
    EXPECT_THAT(error_of(file_of(object({entry("a", "F32", shape, "[0,16]")}), 16)), HasSubstr("tensor 'a': its shape")) << shape;
  }
  for (const char* offsets : {"[16,0]", "[0,15]", "[0]", "[-16,0]", "null", "[0,18446744073709551616]"}) {
    EXPECT_THAT(error_of(file_of(object({entry("a", "F32", "[4]", offsets)}), 16)), HasSubstr("tensor 'a': its data_offsets")) << offsets;
  }
  EXPECT_THAT(error_of(file_of("{\"a\":3}", 0)), HasSubstr("tensor 'a': has no dtype"));
}

TEST(SafetensorsTest, MisalignedTensorsAreRefused) {
  std::string header = object({entry("a", "F32", "[4]", "[0,16]")});
  header.resize((header.size() + 7) / 8 * 8 + 2, ' ');
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(sizeof length + header.size() + 16);
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, header.data(), header.size());
  EXPECT_THAT(error_of(bytes), HasSubstr("tensor 'a': is not aligned"));
}

}  // namespace
}  // namespace fixpoint::engine::detail
