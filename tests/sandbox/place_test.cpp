#include <gtest/gtest.h>

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/sandbox.h"

// A place outlives a run that has left nothing in it: what a run sees must not depend on what the runs before it did.

namespace fixpoint::sandbox {
namespace {

/// Prints what there is to see of the writable directories, and then which file system they are in. ATTRIBUTES: also what a filter does
/// not let a program ask for.
constexpr const char* kLook = R"(
#include <dirent.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
static int recent(time_t t) { return t > time(NULL) - 1000 && t < time(NULL) + 1000; }
static void look(const char* path) {
  struct stat s; memset(&s, 0, sizeof s); stat(path, &s);
  int entries = 0; DIR* d = opendir(path);
  for (struct dirent* e; d && (e = readdir(d));) entries += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
  struct statvfs v; statvfs(path, &v);
  printf("%s %o %d %d %d %d %d %lu %lu", path, s.st_mode, s.st_uid == getuid(), (int)s.st_nlink, entries, recent(s.st_atime),
         recent(s.st_mtime), (unsigned long)v.f_files - v.f_ffree, (unsigned long)v.f_blocks - v.f_bfree);
#ifdef ATTRIBUTES
  int flags = 0; if (d) ioctl(dirfd(d), FS_IOC_GETFLAGS, &flags);
  printf(" %x %ld", flags, (long)listxattr(path, NULL, 0));
#endif
  printf("\n");
}
int main(void) {
  look("."); look("/tmp"); look("/dev/shm"); look("/sandbox");
  struct stat s; stat(".", &s); fprintf(stderr, "%lu", (unsigned long)s.st_dev);
  return 0;
}
)";

constexpr const char* kHeaders =
    "#define _GNU_SOURCE\n#include <errno.h>\n#include <dirent.h>\n#include <fcntl.h>\n#include <linux/fs.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "#include <sys/ioctl.h>\n#include <sys/socket.h>\n#include <sys/stat.h>\n#include <sys/un.h>\n#include <sys/xattr.h>\n#include <unistd.h>\n";

Job c(std::string source) { return {.language = Language::c, .source = std::move(source)}; }

/// With all that the host has; with programs that are the same user as the broker; and without the filter, so that a program can do more.
class PlaceTest : public testing::TestWithParam<std::vector<Protection>> {
 protected:
  static constexpr int kLooks = 8;  // more than there are places at a time

  void SetUp() override {
    auto started = Sandbox::start({.without = GetParam()});
    ASSERT_TRUE(started) << started.error().message();
    sandbox_.emplace(std::move(*started));
    const bool filter = std::find(GetParam().begin(), GetParam().end(), Protection::seccomp) == GetParam().end();
    look_ = (filter ? "" : "#define ATTRIBUTES\n") + std::string(kLook);
    const Verdict verdict = sandbox_->run(c(look_));
    ASSERT_TRUE(verdict.ok()) << verdict.standard_error.bytes;
    untouched_ = verdict.standard_output.bytes;
  }

  void expect_untouched(const std::string& after) {
    for (int i = 0; i < kLooks; ++i) EXPECT_EQ(sandbox_->run(c(look_)).standard_output.bytes, untouched_) << after;
  }

  /// Runs `job`, which prints its file system to stderr, until one comes up again: when an init has gone is the scheduler's affair.
  bool comes_up_again(const Job& job) {
    constexpr int kRuns = 400;
    std::set<std::string> seen;
    for (int i = 0; i < kRuns; ++i) {
      if (!seen.insert(sandbox_->run(job).standard_error.bytes).second) return true;
    }
    return false;
  }

  /// Runs `body`, which may be refused what it tries, and looks again.
  void expect_no_trace_of(const std::string& body) {
    for (int i = 0; i < 3; ++i) {
      const Verdict verdict = sandbox_->run(c(kHeaders + ("int main(void) {\n" + body + "\n  return 0;\n}\n")));
      ASSERT_FALSE(std::holds_alternative<CompileError>(verdict.outcome)) << verdict.standard_error.bytes;
    }
    expect_untouched(body);
  }

  std::optional<Sandbox> sandbox_;
  std::string look_, untouched_;
};

INSTANTIATE_TEST_SUITE_P(Strengths, PlaceTest,
                         testing::Values(std::vector<Protection>{}, std::vector{Protection::separate_uid}, std::vector{Protection::seccomp},
                                         std::vector{Protection::separate_uid, Protection::seccomp, Protection::landlock}),
                         [](const auto& chosen) {
                           std::string text = chosen.param.empty() ? "All" : "Without";
                           for (const Protection protection : chosen.param) text += "_" + std::string(name(protection));
                           return text;
                         });

TEST_P(PlaceTest, RunsThatLeaveNothingStandWhereOthersStood) {
  EXPECT_TRUE(comes_up_again(c(look_)));
}

TEST_P(PlaceTest, TheFilesThatRunsBeganWithAreGone) {
  Job script{.language = Language::python, .source = "import os, sys\nprint(sorted(os.listdir('.')))\nprint(os.stat('.').st_dev, file=sys.stderr)"};
  for (int i = 0; i < kLooks; ++i) {
    Job with_files = script;
    with_files.files = {{"helper_" + std::to_string(i), "1", false}, {"in/directory", "1", false}};
    if (i % 2 == 0) with_files.files.pop_back();
    (void)sandbox_->run(with_files);
    const Verdict verdict = sandbox_->run(script);
    ASSERT_TRUE(verdict.ok()) << verdict.standard_error.bytes;
    EXPECT_EQ(verdict.standard_output.bytes, "['main.py']\n");
  }
  EXPECT_TRUE(comes_up_again(script));
}

TEST_P(PlaceTest, WhatStandsWhereAFileWasIsNotFollowed) {
  for (const char* instead : {"os.symlink('/etc', 'main.py')", "os.mkdir('main.py')", "os.link('/tmp/x', 'main.py')"}) {
    for (int i = 0; i < 3; ++i) {
      (void)sandbox_->run({.language = Language::python,
                           .source = std::string("import os\nopen('/tmp/x', 'w').close()\nos.unlink('main.py')\n") + instead + "\nos.unlink('/tmp/x')"});
    }
    expect_untouched(instead);
  }
}

TEST_P(PlaceTest, FilesDirectoriesAndLinksAreGone) {
  expect_no_trace_of("  close(open(\"left\", O_CREAT | O_WRONLY, 0600));");
  expect_no_trace_of("  FILE* f = fopen(\"/tmp/.left\", \"w\"); if (f) { fputs(\"words\", f); fclose(f); }");
  expect_no_trace_of("  mkdir(\"/dev/shm/left\", 0700);");
  expect_no_trace_of("  symlink(\"/etc/passwd\", \"/tmp/left\");");
  expect_no_trace_of("  close(open(\"left\", O_CREAT | O_WRONLY, 0600)); link(\"left\", \"/tmp/again\"); unlink(\"left\");");
}

TEST_P(PlaceTest, WhatWasRemovedAgainIsNoTrace) {
  expect_no_trace_of("  int f = open(\"left\", O_CREAT | O_WRONLY, 0600); write(f, \"x\", 1); close(f); unlink(\"left\");");
  expect_no_trace_of("  mkdir(\"/tmp/a\", 0700); rmdir(\"/tmp/a\");");
}

TEST_P(PlaceTest, ModesAndAttributesOfTheDirectoriesAreAsTheyWere) {
  expect_no_trace_of("  chmod(\".\", 0777);");
  expect_no_trace_of("  chmod(\"/tmp\", 0);");
  expect_no_trace_of("  chmod(\"/dev/shm\", 02700);");
  expect_no_trace_of("  setxattr(\".\", \"user.left\", \"words\", 5, 0);");
  expect_no_trace_of("  int f = open(\"/tmp\", O_RDONLY), flags = FS_NOATIME_FL; ioctl(f, FS_IOC_SETFLAGS, &flags);");
}

TEST_P(PlaceTest, TimesAreOfToday) {
  constexpr const char* kSet = "  struct timespec times[2] = {{123456789, 111}, {987654321, 222}}; utimensat(AT_FDCWD, ";
  for (const char* path : {".", "/tmp", "/sandbox"}) expect_no_trace_of(kSet + ("\"" + std::string(path)) + "\", times, 0);");
}

/// Where program and broker are the same user, the directories are the program's to move.
TEST_P(PlaceTest, DirectoriesPutInEachOthersPlaceLeadNowhere) {
  expect_no_trace_of("  rename(\"/sandbox/box\", \"/sandbox/other\"); symlink(\"/etc\", \"/sandbox/box\");");
  expect_no_trace_of("  renameat2(AT_FDCWD, \"/sandbox/box\", AT_FDCWD, \"/sandbox/tmp\", RENAME_EXCHANGE); chmod(\"/sandbox\", 0700);");
  expect_no_trace_of("  rmdir(\"/sandbox/shm\"); mkdir(\"/sandbox/shm\", 0755);");
  expect_no_trace_of("  mkdir(\"/sandbox/more\", 0700);");
}

/// The broker removes the files that a run began with, and it sees the host's files.
TEST_P(PlaceTest, AFileOfTheHostWithTheNameOfTheProgramsStays) {
  char directory[] = "/tmp/fixpoint-place-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::filesystem::path file = std::filesystem::path(directory) / "main.py";
  std::ofstream(file) << "host";
  for (int i = 0; i < 3; ++i) {
    (void)sandbox_->run({.language = Language::python,
                         .source = "import os\nos.unlink('main.py')\nos.rename('/sandbox/box', '/sandbox/other')\nos.symlink('" +
                                   std::string(directory) + "', '/sandbox/box')"});
  }
  expect_untouched("a link to the host");
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove_all(directory);
}

/// What is on its way through sockets that hold each other lives until the kernel looks for such.
TEST_P(PlaceTest, FilesInFlightKeepNoPlace) {
  expect_no_trace_of(
      "  int s[2]; socketpair(AF_UNIX, SOCK_DGRAM, 0, s); int f = open(\"held\", O_CREAT | O_RDWR, 0600); unlink(\"held\"); write(f, \"x\", 1);\n"
      "  for (int i = 0; i < 2; ++i) { int both[2] = {s[1 - i], f}; char space[CMSG_SPACE(sizeof both)] = {0}; char byte = 0;\n"
      "    struct iovec part = {&byte, 1}; struct msghdr m = {0}; m.msg_iov = &part; m.msg_iovlen = 1; m.msg_control = space;\n"
      "    m.msg_controllen = sizeof space; struct cmsghdr* h = CMSG_FIRSTHDR(&m); h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS;\n"
      "    h->cmsg_len = CMSG_LEN(sizeof both); memcpy(CMSG_DATA(h), both, sizeof both); sendmsg(s[i], &m, 0); }");
}

TEST_P(PlaceTest, MuchThatWasLeftIsGone) {
  expect_no_trace_of("  for (int i = 0; i < 3000; ++i) { char name[16]; snprintf(name, sizeof name, \"%d\", i); close(open(name, O_CREAT | O_WRONLY, 0600)); }");
  expect_no_trace_of("  static char page[1 << 20]; memset(page, 1, sizeof page); int f = open(\"/tmp/much\", O_CREAT | O_WRONLY, 0600);\n"
                     "  for (int i = 0; i < 20; ++i) write(f, page, sizeof page);");
}

TEST_P(PlaceTest, AProgramThatWasKilledLeavesNothing) {
  expect_no_trace_of("  mkdir(\"left\", 0700); abort();");
  expect_no_trace_of("  close(open(\"/tmp/left\", O_CREAT | O_WRONLY, 0600)); volatile int* nowhere = 0; *nowhere = 1;");
}

TEST_P(PlaceTest, OtherLimitsAndCollectedFilesDoNotReachTheNextRun) {
  Job collecting = c("#include <stdio.h>\nint main(void) { FILE* f = fopen(\"kept\", \"w\"); fputs(\"1\", f); fclose(f); remove(\"kept\"); return 0; }\n");
  collecting.collect = {"kept"};
  Job small = c(look_);
  small.limits.file_bytes = 1 << 20;
  for (int i = 0; i < 3; ++i) {
    (void)sandbox_->run(collecting);
    (void)sandbox_->run(small);
  }
  expect_untouched("other limits");
}

}  // namespace
}  // namespace fixpoint::sandbox
