#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <initializer_list>

#include "sandbox/policy.h"

// What programs may ask of the kernel. Everything that stands in no list is answered with ENOSYS, as an older kernel would.

namespace fixpoint::sandbox {

namespace {

using Calls = std::initializer_list<std::string_view>;

constexpr std::string_view kFiles[] = {
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "open",
    "openat", "openat2", "creat", "close", "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs",
    "fstatfs", "lseek", "access", "faccessat", "faccessat2", "dup", "dup2", "dup3", "pipe", "pipe2", "flock", "fsync",
    "fdatasync", "truncate", "ftruncate", "fallocate", "getdents", "getdents64", "getcwd", "chdir", "fchdir", "rename",
    "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat",
    "readlink", "readlinkat", "chmod", "fchmod", "fchmodat", "umask", "utime", "utimes", "futimesat", "utimensat",
    "sendfile", "copy_file_range", "fadvise64", "readahead", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
    "llistxattr", "flistxattr"};

constexpr std::string_view kMemory[] = {"mmap",    "munmap", "mprotect",  "mremap",  "brk",
                                        "madvise", "msync",  "mincore",   "munlock", "munlockall",
                                        "membarrier", "pkey_alloc", "pkey_free", "pkey_mprotect", "memfd_create"};

constexpr std::string_view kWaiting[] = {
    "select", "pselect6", "poll", "ppoll", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
    "epoll_pwait2", "eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_gettime", "signalfd",
    "signalfd4", "nanosleep", "clock_nanosleep", "getitimer", "setitimer", "alarm", "pause", "timer_create",
    "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "gettimeofday", "time", "times",
    "clock_gettime", "clock_getres", "restart_syscall"};

constexpr std::string_view kSignals[] = {"rt_sigaction",    "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
                                         "rt_sigtimedwait", "rt_sigsuspend",  "rt_sigqueueinfo", "rt_tgsigqueueinfo",
                                         "sigaltstack",     "kill",           "tkill",        "tgkill",
                                         "pidfd_open",      "pidfd_send_signal"};

constexpr std::string_view kProcesses[] = {
    "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "getpid", "getppid", "gettid",
    "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "getpgid", "getpgrp", "getsid",
    "setpgid", "setsid", "uname", "arch_prctl", "futex", "futex_waitv", "futex_wake", "futex_wait", "set_tid_address",
    "set_robust_list", "get_robust_list", "rseq", "getrandom", "getrlimit", "setrlimit", "getrusage", "sysinfo", "capget",
    "getcpu", "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_getscheduler",
    "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "getpriority", "setpriority",
    "ioprio_get"};

constexpr std::string_view kSockets[] = {"connect",     "bind",        "listen",  "accept",   "accept4",  "getsockname",
                                         "getpeername", "sendto",      "recvfrom", "sendmsg", "recvmsg",  "sendmmsg",
                                         "recvmmsg",    "shutdown",    "getsockopt", "setsockopt"};

/// Harmless programs try these and go on without.
constexpr std::string_view kRefused[] = {
    "chown",   "fchown",  "lchown",  "fchownat", "setuid",   "setgid",   "setreuid", "setregid", "setresuid", "setresgid",
    "setfsuid", "setfsgid", "setgroups", "capset", "sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set",
    "mlock",   "mlock2",  "mlockall", "sync",    "syncfs",   "setxattr", "lsetxattr", "fsetxattr", "removexattr",
    "lremovexattr", "fremovexattr"};

/// No program that solves a task needs these; the run ends, and the verdict names the call.
constexpr std::string_view kDenied[] = {
    // other processes' memory and descriptors
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
    // ways around the filter
    "io_uring_setup", "io_uring_enter", "io_uring_register", "seccomp", "userfaultfd", "bpf", "perf_event_open",
    // keys and handles that pass between runs
    "keyctl", "add_key", "request_key", "open_by_handle_at", "name_to_handle_at", "fanotify_init",
    // namespaces and mounts
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick",
    "open_tree", "move_mount", "mount_setattr",
    // the machine
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
    "quotactl", "quotactl_fd", "syslog", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname",
    "setdomainname", "vhangup", "iopl", "ioperm", "modify_ldt"};

template <class List>
void add(SyscallPolicy& policy, const List& calls, Action action) {
  for (const std::string_view call : calls) policy.rules.push_back({call, action});
}

/// `call` is allowed where argument `index` is one of `values`; anything else has `otherwise`.
void allow_values(SyscallPolicy& policy, std::string_view call, std::uint8_t index,
                  std::initializer_list<std::uint32_t> values, Action otherwise, std::uint32_t mask = 0xffffffff) {
  for (const std::uint32_t value : values) policy.rules.push_back({call, Action::allow, {{index, mask, value}}});
  policy.rules.push_back({call, otherwise});
}

void add_process_rules(SyscallPolicy& policy) {
  constexpr std::uint32_t kForbidden = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                       CLONE_NEWPID | CLONE_NEWNET | CLONE_UNTRACED | CLONE_PTRACE |
                                       CLONE_PARENT;  // its child would be the broker's, where the program comes from a zygote
  policy.rules.push_back({"clone", Action::allow, {{0, kForbidden, 0}}});
  policy.rules.push_back({"clone", Action::deny});
  // clone3's flags stand behind a pointer, where no filter can see them. C libraries then use clone.
  policy.rules.push_back({"clone3", Action::enosys});
  allow_values(policy, "prlimit64", 0, {0}, Action::refuse);
  allow_values(policy, "personality", 0, {0, 0xffffffff}, Action::deny);
  policy.rules.push_back({"prctl", Action::deny, {{0, 0xffffffff, PR_SET_SECCOMP}}});
  policy.rules.push_back({"prctl", Action::allow, {{0, 0xffffffff, PR_SET_DUMPABLE}, {1, 0xffffffff, 0}}});
  allow_values(policy, "prctl", 0,
               {PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ,
                PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_VMA,
                PR_SET_THP_DISABLE, PR_GET_THP_DISABLE},
               Action::refuse);
}

void add_file_rules(SyscallPolicy& policy) {
  constexpr std::uint32_t kSetLease = 1024, kNotify = 1026, kSetPipeSize = 1031;
  for (const std::uint32_t command : {kSetLease, kNotify, kSetPipeSize}) {
    policy.rules.push_back({"fcntl", Action::refuse, {{1, 0xffffffff, command}}});
  }
  policy.rules.push_back({"fcntl", Action::allow});
  allow_values(policy, "mknod", 1, {0, S_IFREG, S_IFIFO, S_IFSOCK}, Action::refuse, S_IFMT);
  allow_values(policy, "mknodat", 2, {0, S_IFREG, S_IFIFO, S_IFSOCK}, Action::refuse, S_IFMT);
  constexpr std::uint32_t kPushInput = 0x5412, kLinuxConsole = 0x541c;  // TIOCSTI, TIOCLINUX
  for (const std::uint32_t request : {kPushInput, kLinuxConsole}) {
    policy.rules.push_back({"ioctl", Action::deny, {{1, 0xffffffff, request}}});
  }
  // FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC; no descriptor of a run is a terminal.
  allow_values(policy, "ioctl", 1, {0x541b, 0x5421, 0x5450, 0x5451, 0x5452}, Action::no_terminal);
}

void add_socket_rules(SyscallPolicy& policy) {
  add(policy, kSockets, Action::allow);
  allow_values(policy, "socket", 0, {AF_UNIX}, Action::no_family);
  allow_values(policy, "socketpair", 0, {AF_UNIX}, Action::no_family);
}

}  // namespace

SyscallPolicy syscall_policy(Language language) {
  SyscallPolicy policy;
  add(policy, kFiles, Action::allow);
  add(policy, kMemory, Action::allow);
  add(policy, kWaiting, Action::allow);
  add(policy, kSignals, Action::allow);
  add(policy, kProcesses, Action::allow);
  add(policy, kRefused, Action::refuse);
  add(policy, kDenied, Action::deny);
  add_process_rules(policy);
  add_file_rules(policy);
  // A shell has no sockets of its own; the name service lookups of its tools go on without.
  if (language != Language::bash) {
    add_socket_rules(policy);
  } else {
    policy.rules.push_back({"socket", Action::no_family});
  }
  return policy;
}

}  // namespace fixpoint::sandbox
