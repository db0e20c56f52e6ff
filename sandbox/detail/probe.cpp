#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "sandbox/detail/broker.h"

// Runs as an ordinary program in a sandbox and tries what must not work.

namespace fixpoint::sandbox::detail {

namespace {

void say(const char* protection, bool active, const std::string& proof) {
  std::printf("%s %d %s\n", protection, active ? 1 : 0, proof.c_str());
}

std::string outcome(long result) { return result >= 0 ? "succeeded" : std::strerror(errno); }

void probe_processes() {
  say("pid_namespace", ::getppid() == 1, "this process is " + std::to_string(::getpid()) + ", its parent is " +
                                             std::to_string(::getppid()));
}

void probe_files() {
  struct stat status {};
  bool hidden = true;
  for (const char* path : {"/root", "/home", "/var", "/sys", "/etc/shadow", "/run"}) {
    hidden = hidden && ::stat(path, &status) != 0;
  }
  say("mount_namespace", hidden, hidden ? "/home, /root, /var, /sys, /run and /etc/shadow do not exist"
                                        : "a directory of the host can be seen");
  struct statvfs root {};
  const bool read_only = ::statvfs("/", &root) == 0 && (root.f_flag & ST_RDONLY) != 0;
  const long made = ::open("/etc/probe", O_CREAT | O_WRONLY, 0600);
  say("read_only_root", read_only && made < 0, "creating /etc/probe: " + outcome(made));
  struct statvfs box {};
  const bool capped = ::statvfs("/sandbox", &box) == 0 && box.f_blocks > 0 && box.f_files > 0;
  say("capped_tmpfs", capped, "/sandbox holds " + std::to_string(box.f_blocks * box.f_bsize >> 10) + " KiB and " +
                                  std::to_string(box.f_files) + " inodes");
}

void probe_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  const bool read = ::syscall(SYS_capget, &header, sets) == 0;
  const bool none = read && (sets[0].effective | sets[0].permitted | sets[0].inheritable | sets[1].effective |
                             sets[1].permitted | sets[1].inheritable) == 0;
  int bounding = 0;
  for (unsigned long capability = 0; capability < 41; ++capability) {
    if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1) ++bounding;
  }
  say("no_capabilities", none && bounding == 0, "capability sets empty, " + std::to_string(bounding) +
                                                    " left in the bounding set");
  say("no_new_privileges", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "prctl(PR_GET_NO_NEW_PRIVS)");
  say("uid", ::getuid() != 0 && ::geteuid() == ::getuid(), std::to_string(::getuid()));
}

void probe_limits() {
  rlimit files{}, core{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_CORE, &core);
  rlimit more{files.rlim_max + 1, files.rlim_max + 1};
  const long raised = ::setrlimit(RLIMIT_NOFILE, &more);
  say("rlimits", raised < 0 && core.rlim_max <= 1,
      "raising RLIMIT_NOFILE above " + std::to_string(files.rlim_max) + ": " + outcome(raised));
}

void probe_filter() {
  // A number that no kernel has: a filter or the kernel says ENOSYS; a known call that the filter refuses tells them apart.
  const long refused = ::syscall(SYS_setfsuid, ::getuid());
  say("seccomp", ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 || (refused < 0 && errno == EPERM),
      "setfsuid: " + outcome(refused));
}

void probe_landlock() {
  // The file's owner may write to it; only Landlock, which allows writing below /sandbox alone, says no.
  const long opened = ::open("/proc/self/comm", O_WRONLY);
  say("landlock", opened < 0 && errno == EACCES, "writing to the own /proc/self/comm: " + outcome(opened));
}

}  // namespace

int run_probe() {
  probe_processes();
  probe_files();
  probe_rights();
  probe_limits();
  probe_filter();
  probe_landlock();
  return 0;
}

}  // namespace fixpoint::sandbox::detail
