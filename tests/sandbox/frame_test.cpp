#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "sandbox/detail/box_files.h"
#include "sandbox/detail/cgroup_mounts.h"
#include "sandbox/detail/cgroups.h"
#include "sandbox/detail/channel.h"
#include "sandbox/detail/frame.h"

namespace fixpoint::sandbox::detail {
namespace {

LaunchFrame example() {
  LaunchFrame frame;
  frame.template_id = 3;
  frame.flags = LaunchFrame::mount_proc | LaunchFrame::judge;
  frame.cpu_milliseconds = 1000;
  frame.memory_bytes = 64 << 20;
  frame.processes = 5;
  frame.arguments = {"/usr/bin/python3", "main.py", ""};
  frame.environment = {"A=b"};
  frame.files = {{"main.py", std::string("print(1)\0x", 10), false}, {"dir/tool", "", true}};
  return frame;
}

TEST(FrameTest, LaunchComesBackAsItWas) {
  const auto parsed = parse_frame(encode(example()));
  ASSERT_TRUE(parsed.has_value());
  const auto& frame = std::get<LaunchFrame>(*parsed);
  EXPECT_EQ(frame.arguments, example().arguments);
  EXPECT_EQ(frame.files[0].content, example().files[0].content);
  EXPECT_TRUE(frame.files[1].executable);
  EXPECT_EQ(frame.descriptors(), 6U);
}

TEST(FrameTest, EveryTruncationIsRefusedWithItsField) {
  const std::vector<std::byte> whole = encode(example());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = parse_frame(std::span(whole).first(size));
    ASSERT_FALSE(parsed.has_value()) << size;
    EXPECT_FALSE(parsed.error().field.empty());
    EXPECT_LE(parsed.error().offset, size);
  }
}

TEST(FrameTest, BytesLeftOverAreRefused) {
  std::vector<std::byte> bytes = encode(example());
  bytes.push_back({});
  const auto parsed = parse_frame(bytes);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().field, "end");
}

TEST(FrameTest, FlippedBitsNeverCrashTheParser) {
  const std::vector<std::byte> whole = encode(example());
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = whole;
    for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] ^= std::byte(1U << random() % 8);
    (void)parse_frame(bytes);
  }
}

TEST(FrameTest, UnsafeFilesAndHugeCountsAreRefused) {
  LaunchFrame frame = example();
  frame.files[0].path = "../main.py";
  EXPECT_EQ(parse_frame(encode(frame)).error().field, "file path");
  frame = example();
  frame.arguments[0] = std::string("a\0b", 3);
  EXPECT_EQ(parse_frame(encode(frame)).error().field, "arguments");
  frame = example();
  frame.flags = 1 << 20;
  EXPECT_EQ(parse_frame(encode(frame)).error().field, "flags");
  frame = example();
  frame.arguments.clear();
  EXPECT_EQ(parse_frame(encode(frame)).error().field, "arguments");
  frame = example();
  frame.flags = LaunchFrame::place_executable;
  EXPECT_EQ(parse_frame(encode(frame)).error().field, "flags");
  frame.flags |= LaunchFrame::executable;  // but the first file has bytes of its own
  EXPECT_EQ(parse_frame(encode(frame)).error().field, "flags");
  frame.files[0].content.clear();
  EXPECT_TRUE(parse_frame(encode(frame)).has_value());
}

TEST(FrameTest, SafePathsAreRelativeAndPlain) {
  for (const char* good : {"a", "a.b", "dir/file_1.txt", "a/b/c/d", "..."}) EXPECT_TRUE(is_safe_path(good)) << good;
  for (const char* bad : {"", "/", ".", "..", "a/", "/a", "a//b", "a/../b", "./a", "-a", "a/-b", "a b", "a/b/c/d/e", "é"}) {
    EXPECT_FALSE(is_safe_path(bad)) << bad;
  }
  EXPECT_FALSE(is_safe_path(std::string(101, 'a')));
}

TEST(FrameTest, ReportsOfAnotherSizeOrKindAreRefused) {
  Report report;
  report.kind = Report::Kind::ended;
  const auto bytes = std::as_bytes(std::span(&report, 1));
  EXPECT_TRUE(parse_report(bytes).has_value());
  EXPECT_FALSE(parse_report(bytes.first(bytes.size() - 1)).has_value());
  report.kind = static_cast<Report::Kind>(99);
  EXPECT_FALSE(parse_report(bytes).has_value());
}

TEST(ChannelTest, LongFramesTravelInAMemoryFile) {
  auto sockets = make_socket_pair();
  ASSERT_TRUE(sockets.has_value());
  LaunchFrame frame = example();
  frame.files[0].content.assign(kMaxInline * 3, 'x');
  const int descriptors[] = {sockets->first.get()};
  ASSERT_TRUE(send_frame(sockets->first.get(), encode(frame), descriptors));
  auto message = receive_message(sockets->second.get(), true);
  ASSERT_TRUE(message.has_value() && unfold_frame(*message));
  EXPECT_EQ(message->descriptors.size(), 1U);
  const auto parsed = parse_frame(message->bytes);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::get<LaunchFrame>(*parsed).files[0].content, frame.files[0].content);
}

TEST(BoxFilesTest, FirstFileTakesItsBytesFromADescriptorWhosePositionStays) {
  std::string directory = testing::TempDir() + "/fixpoint-box-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const UniqueFd box(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string program(300'000, 'p');
  const UniqueFd source = make_memory_file("program", std::as_bytes(std::span(program)), true);
  ASSERT_EQ(::lseek(source.get(), 5, SEEK_SET), 5);
  const Failure failure = write_inputs(box.get(), {{"main", "", true}, {"data.txt", "text", false}}, source.get());
  EXPECT_FALSE(failure) << name(failure.step) << ' ' << failure.error;
  const auto content = [&](const std::string& file) {
    std::ifstream stream(directory + "/" + file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_TRUE(content("main") == program);
  EXPECT_EQ(content("data.txt"), "text");
  EXPECT_EQ(::access((directory + "/main").c_str(), X_OK), 0);
  EXPECT_EQ(::lseek(source.get(), 0, SEEK_CUR), 5);
  std::filesystem::remove_all(directory);
}

TEST(CgroupPlacesTest, HybridHostHasBothVersions) {
  const CgroupPlaces places = parse_cgroup_places(
      "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
      "5:memory:/jobs/a\n3:cpu,cpuacct:/\n1:name=systemd:/init.scope\n0::/user.slice\n");
  EXPECT_EQ(places.unified, "/sys/fs/cgroup/unified/user.slice");
  EXPECT_EQ(places.legacy_directory("memory"), "/sys/fs/cgroup/memory/jobs/a");
  EXPECT_EQ(places.legacy_directory("cpuacct"), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(places.legacy_directory("pids"), "");
}

TEST(CgroupPlacesTest, ContainerSeesItsOwnPartOfTheTree) {
  const CgroupPlaces places = parse_cgroup_places(
      "40 30 0:26 /docker/abc /sys/fs/cgroup rw,nosuid master:1 - cgroup2 cgroup rw\n", "0::/docker/abc/inner\n");
  EXPECT_EQ(places.unified, "/sys/fs/cgroup/inner");
  // A path outside of what is mounted cannot be followed.
  EXPECT_EQ(parse_cgroup_places("40 30 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/../elsewhere\n").unified,
            "/sys/fs/cgroup");
}

TEST(CgroupCounterTest, BothDialectsAreMicroseconds) {
  EXPECT_EQ(parse_cpu_counter("123456789\n"), 123456U);
  EXPECT_EQ(parse_cpu_counter("usage_usec 777\nuser_usec 1\nsystem_usec 2\n"), 777U);
  EXPECT_EQ(parse_cpu_counter(""), 0U);
}

}  // namespace
}  // namespace fixpoint::sandbox::detail
