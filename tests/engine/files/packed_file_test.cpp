#include "engine/detail/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/engine/models/temporary_directory.h"

namespace fixpoint::engine::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Bytes = std::vector<std::byte>;

const PackedKey kKey{"panels", 0x0123456789ABCDEF};
constexpr std::size_t kHeader = 48;

Bytes weight(std::size_t size, int first) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return out;
}

Bytes content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class PackedFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "packed"; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) names.push_back(entry.path().filename().string());
    return names;
  }
  /// Two weights, "a" of 100 bytes and "b" of 64.
  [[nodiscard]] Bytes written() const {
    PackedFileWriter writer(path());
    writer.add("a", weight(100, 1));
    writer.add("b", weight(64, 7));
    const auto error = writer.commit(kKey);
    EXPECT_FALSE(error) << error->message();
    return content_of(path());
  }

 private:
  test_models::TemporaryDirectory directory_;
};

TEST_F(PackedFileTest, WhatIsWrittenIsRead) {
  const Bytes file = written();
  const auto directory = parse_packed_file(file, "f");
  ASSERT_TRUE(directory) << directory.error().message();
  EXPECT_EQ(directory->key, kKey);
  ASSERT_EQ(directory->entries.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(directory->find("a"), weight(100, 1)));
  EXPECT_TRUE(std::ranges::equal(directory->find("b"), weight(64, 7)));
  EXPECT_TRUE(directory->find("c").empty());
  for (const PackedEntry& entry : directory->entries) EXPECT_EQ((entry.bytes.data() - file.data()) % 64, 0) << entry.name;
  EXPECT_THAT(files(), ElementsAre("packed"));
}

TEST_F(PackedFileTest, EveryTruncationIsAnError) {
  const Bytes whole = written();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_packed_file(std::span(whole).first(size), "f")) << size;
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_packed_file(longer, "f"));
}

TEST_F(PackedFileTest, EveryFlippedBitOfHeaderAndDirectoryIsAnError) {
  const Bytes whole = written();
  std::uint64_t directory = 0;
  std::memcpy(&directory, whole.data() + 24, sizeof directory);
  ASSERT_LT(directory, whole.size());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= kHeader && at < directory) continue;  // weights have no checksum
    for (const int bit : {0, 3, 7}) {
      Bytes damaged = whole;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(parse_packed_file(damaged, "f")) << at;
    }
  }
}

TEST_F(PackedFileTest, AnotherVersionIsNamed) {
  Bytes file = written();
  file[8] = std::byte{99};
  const auto refused = parse_packed_file(file, "f");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, LoadError::Kind::unsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("99"));
}

/// A directory of one weight "w" at a place.
Bytes directory_of(std::uint64_t offset, std::uint64_t bytes, std::uint32_t count = 1, const std::string& behind = {}) {
  std::string text;
  const auto put = [&](auto number) { text.append(reinterpret_cast<const char*>(&number), sizeof number); };
  put(std::uint32_t{4});
  text += "form";
  put(std::uint64_t{5});
  put(count);
  put(std::uint32_t{1});
  text += "w";
  put(offset);
  put(bytes);
  text += behind;
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

TEST_F(PackedFileTest, WeightsOutsideTheFileAreRefused) {
  const Bytes weights(256);
  const auto parse = [&](const Bytes& directory) { return parse_packed_directory(directory, weights, "f"); };
  const auto good = parse(directory_of(64, 192));
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->find("w").data(), weights.data() + 64);
  EXPECT_EQ(good->find("w").size(), 192U);
  EXPECT_FALSE(parse(directory_of(64, 193)));
  EXPECT_FALSE(parse(directory_of(63, 1)));
  EXPECT_FALSE(parse(directory_of(320, 0)));
  EXPECT_FALSE(parse(directory_of(64, ~std::uint64_t{0})));
  EXPECT_FALSE(parse(directory_of(~std::uint64_t{63}, 128)));
  EXPECT_FALSE(parse(directory_of(64, 192, 2)));
  EXPECT_FALSE(parse(directory_of(64, 192, ~std::uint32_t{0})));
  EXPECT_FALSE(parse(directory_of(64, 192, 1, "x")));
}

TEST_F(PackedFileTest, OfTwoThatWriteAtOnceTheLastOnesStays) {
  PackedFileWriter first(path());
  PackedFileWriter second(path());
  first.add("w", weight(10, 1));
  second.add("w", weight(10, 2));
  EXPECT_FALSE(first.commit(kKey));
  const Bytes early = content_of(path());
  ASSERT_TRUE(parse_packed_file(early, "f"));
  EXPECT_TRUE(std::ranges::equal(parse_packed_file(early, "f")->find("w"), weight(10, 1)));
  EXPECT_FALSE(second.commit(kKey));
  const Bytes late = content_of(path());
  ASSERT_TRUE(parse_packed_file(late, "f"));
  EXPECT_TRUE(std::ranges::equal(parse_packed_file(late, "f")->find("w"), weight(10, 2)));
  EXPECT_THAT(files(), ElementsAre("packed"));
}

TEST_F(PackedFileTest, WhatIsNotCommittedLeavesNothingBehind) {
  {
    PackedFileWriter writer(path());
    writer.add("w", weight(10, 1));
    EXPECT_EQ(files().size(), 1U);
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(PackedFileTest, WhatAKilledWriterLeftIsRemovedByTheNextAndNothingElseIs) {
  const pid_t child = ::fork();
  if (child == 0) {
    PackedFileWriter killed(path());
    killed.add("w", weight(10, 1));
    ::_exit(0);  // no destructor runs
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string left = "packed.tmp-" + std::to_string(child) + "-0";
  ASSERT_THAT(files(), ElementsAre(left));
  PackedFileWriter other(path().parent_path() / "other");
  EXPECT_EQ(files().size(), 2U) << "of another cache";
  for (const char* name : {"packed.tmp-1-0x", "packed.tmp-1", "packed.tmp--0", "packed.weights.tmp-1-0"}) std::ofstream(path().parent_path() / name);
  std::filesystem::create_directory(path().parent_path() / "packed.tmp-2-0");

  PackedFileWriter alive(path());
  PackedFileWriter last(path());
  const std::string own = std::to_string(::getpid());
  EXPECT_THAT(files(), UnorderedElementsAre("other.tmp-" + own + "-0", "packed.tmp-" + own + "-0", "packed.tmp-" + own + "-1",
                                            "packed.tmp-1-0x", "packed.tmp-1", "packed.tmp--0", "packed.weights.tmp-1-0", "packed.tmp-2-0"));
  alive.add("w", weight(10, 2));
  last.add("w", weight(10, 3));
  EXPECT_FALSE(last.commit(kKey));
  EXPECT_FALSE(alive.commit(kKey)) << "two that live leave each other alone";
}

TEST_F(PackedFileTest, AFolderThatIsNotThereIsTold) {
  PackedFileWriter writer(path() / "nowhere" / "packed");
  writer.add("w", weight(10, 1));
  const auto error = writer.commit(kKey);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, LoadError::Kind::io);
  EXPECT_THAT(error->message(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace fixpoint::engine::detail
