#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sandbox/sandbox.h"

// A place outlives a run that has left nothing in it: what a run sees must not depend on what the runs before it did.

namespace fixpoint::sandbox {
namespace {

/// Prints what there is to see of the three writable directories, and then which file system they are in.
constexpr const char* kLook =
    "#include <dirent.h>\n#include <stdio.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <sys/statvfs.h>\n#include <unistd.h>\n"
    "static void look(const char* path) {\n"
    "  struct stat s; memset(&s, 0, sizeof s); stat(path, &s);\n"
    "  int entries = 0; DIR* d = opendir(path);\n"
    "  for (struct dirent* e; d && (e = readdir(d));) entries += e->d_name[0] != '.';\n"
    "  struct statvfs v; statvfs(path, &v);\n"
    "  printf(\"%s %o %d %d %d %lu %lu\\n\", path, s.st_mode, s.st_uid == getuid(), (int)s.st_nlink, entries,\n"
    "         (unsigned long)v.f_files - v.f_ffree, (unsigned long)v.f_blocks - v.f_bfree);\n"
    "}\n"
    "int main(void) {\n"
    "  look(\".\"); look(\"/tmp\"); look(\"/dev/shm\");\n"
    "  struct stat s; stat(\".\", &s); fprintf(stderr, \"%lu\", (unsigned long)s.st_dev);\n"
    "  return 0;\n}\n";

Job c(std::string source) { return {.language = Language::c, .source = std::move(source)}; }

class PlaceTest : public testing::Test {
 protected:
  static constexpr int kLooks = 8;  // more than there are places at a time

  void SetUp() override {
    auto started = Sandbox::start();
    ASSERT_TRUE(started) << started.error().message();
    sandbox_.emplace(std::move(*started));
    const Verdict verdict = sandbox_->run(c(kLook));
    ASSERT_TRUE(verdict.ok()) << verdict.standard_error.bytes;
    untouched_ = verdict.standard_output.bytes;
  }

  /// Runs `body`, which may be refused what it tries, and looks again.
  void expect_no_trace_of(const std::string& body) {
    for (int i = 0; i < 3; ++i) {
      (void)sandbox_->run(c("#include <errno.h>\n#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/stat.h>\n"
                            "#include <sys/xattr.h>\n#include <unistd.h>\nint main(void) {\n" + body + "\n  return 0;\n}\n"));
    }
    for (int i = 0; i < kLooks; ++i) EXPECT_EQ(sandbox_->run(c(kLook)).standard_output.bytes, untouched_) << body;
  }

  std::optional<Sandbox> sandbox_;
  std::string untouched_;
};

TEST_F(PlaceTest, RunsThatLeaveNothingStandWhereOthersStood) {
  std::set<std::string> file_systems;
  for (int i = 0; i < kLooks; ++i) file_systems.insert(sandbox_->run(c(kLook)).standard_error.bytes);
  EXPECT_LT(file_systems.size(), static_cast<std::size_t>(kLooks));
}

TEST_F(PlaceTest, TheFilesThatRunsBeganWithAreGone) {
  Job script{.language = Language::python, .source = "import os\nprint(sorted(os.listdir('.')), os.stat('.').st_dev)"};
  std::set<std::string> file_systems;
  for (int i = 0; i < kLooks; ++i) {
    Job with_files = script;
    with_files.files = {{"helper_" + std::to_string(i), "1", false}, {"in/directory", "1", false}};
    if (i % 2 == 0) with_files.files.pop_back();
    (void)sandbox_->run(with_files);
    const Verdict verdict = sandbox_->run(script);
    ASSERT_TRUE(verdict.ok()) << verdict.standard_error.bytes;
    EXPECT_EQ(verdict.standard_output.bytes.substr(0, 12), "['main.py'] ");
    file_systems.insert(verdict.standard_output.bytes);
  }
  EXPECT_LT(file_systems.size(), static_cast<std::size_t>(kLooks));
}

TEST_F(PlaceTest, WhatStandsWhereAFileWasIsNotFollowed) {
  for (const char* instead : {"os.symlink('/etc', 'main.py')", "os.mkdir('main.py')", "os.link('/tmp/x', 'main.py')"}) {
    for (int i = 0; i < 3; ++i) {
      (void)sandbox_->run({.language = Language::python,
                           .source = std::string("import os\nopen('/tmp/x', 'w').close()\nos.unlink('main.py')\n") + instead + "\nos.unlink('/tmp/x')"});
    }
    for (int i = 0; i < kLooks; ++i) EXPECT_EQ(sandbox_->run(c(kLook)).standard_output.bytes, untouched_) << instead;
  }
}

TEST_F(PlaceTest, FilesDirectoriesAndLinksAreGone) {
  expect_no_trace_of("  close(open(\"left\", O_CREAT | O_WRONLY, 0600));");
  expect_no_trace_of("  FILE* f = fopen(\"/tmp/.left\", \"w\"); if (f) { fputs(\"words\", f); fclose(f); }");
  expect_no_trace_of("  mkdir(\"/dev/shm/left\", 0700);");
  expect_no_trace_of("  symlink(\"/etc/passwd\", \"/tmp/left\");");
  expect_no_trace_of("  close(open(\"left\", O_CREAT | O_WRONLY, 0600)); link(\"left\", \"/tmp/again\"); unlink(\"left\");");
}

TEST_F(PlaceTest, WhatWasRemovedAgainIsNoTrace) {
  expect_no_trace_of("  int f = open(\"left\", O_CREAT | O_WRONLY, 0600); write(f, \"x\", 1); close(f); unlink(\"left\");");
  expect_no_trace_of("  mkdir(\"/tmp/a\", 0700); rmdir(\"/tmp/a\");");
}

TEST_F(PlaceTest, ModesAndAttributesOfTheDirectoriesAreAsTheyWere) {
  expect_no_trace_of("  chmod(\".\", 0777);");
  expect_no_trace_of("  chmod(\"/tmp\", 0);");
  expect_no_trace_of("  chmod(\"/dev/shm\", 02700);");
  expect_no_trace_of("  setxattr(\".\", \"user.left\", \"words\", 5, 0);");
}

TEST_F(PlaceTest, AProgramThatWasKilledLeavesNothing) {
  expect_no_trace_of("  mkdir(\"left\", 0700); abort();");
  expect_no_trace_of("  close(open(\"/tmp/left\", O_CREAT | O_WRONLY, 0600)); volatile int* nowhere = 0; *nowhere = 1;");
}

TEST_F(PlaceTest, OtherLimitsAndCollectedFilesDoNotReachTheNextRun) {
  Job collecting = c("#include <stdio.h>\nint main(void) { FILE* f = fopen(\"kept\", \"w\"); fputs(\"1\", f); fclose(f); remove(\"kept\"); return 0; }\n");
  collecting.collect = {"kept"};
  Job small = c(kLook);
  small.limits.file_bytes = 1 << 20;
  for (int i = 0; i < 3; ++i) {
    (void)sandbox_->run(collecting);
    (void)sandbox_->run(small);
  }
  for (int i = 0; i < kLooks; ++i) EXPECT_EQ(sandbox_->run(c(kLook)).standard_output.bytes, untouched_);
}

}  // namespace
}  // namespace fixpoint::sandbox
