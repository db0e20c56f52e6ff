#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sandbox/detail/frame.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// The interpreters that stand prepared in a template's root, and the programs that were forked from them. A program is born in
/// its run's pid namespace but as the broker's child, so that its end is seen at once, whatever its zygote is doing.
class Zygotes {
 public:
  /// What has to be told to a run's init: how its program ended (Report::Kind::child_ended).
  struct ProgramEnd {
    pid_t init = 0;
    Report report;
  };

  /// One that takes another program, or 0 where the template has none or none stays alive. A new one is started in `mounts`
  /// with `filter` for its programs; it keeps its capabilities where `user_namespace` says that it needs them there.
  [[nodiscard]] pid_t take(const TemplateFrame& root, int mounts, const PolicyFrame& filter, bool user_namespace);
  /// Asks for a program in the run of `init`; false with errno.
  [[nodiscard]] bool fork(pid_t zygote, pid_t init, const ForkFrame& frame, std::span<const int> descriptors);

  [[nodiscard]] bool contains(pid_t pid) const { return zygotes_.contains(pid); }
  [[nodiscard]] bool empty() const { return zygotes_.empty(); }
  /// Pid and socket of each; a socket that is readable wants take_message.
  [[nodiscard]] std::vector<std::pair<pid_t, int>> sockets() const;
  /// Something when a program is announced that has ended already.
  std::optional<ProgramEnd> take_message(pid_t zygote);
  /// A zygote was reaped; the inits that wait for a program of it wait in vain.
  std::vector<pid_t> ended(pid_t zygote);
  /// Some other child of the broker was reaped. Empty where it is not known (yet) whose program it was.
  std::optional<ProgramEnd> program_ended(pid_t pid, int status, const rusage& usage);
  void kill_all() const;
  void forget(pid_t zygote) { zygotes_.erase(zygote); }

 private:
  struct Zygote {
    std::uint32_t template_id = 0;
    UniqueFd socket;
    std::uint32_t forks = 0;
    std::vector<pid_t> waiting;  ///< inits whose program is asked for, but not announced
    bool retired = false;        ///< gets no more work; leaves when its last program is announced
  };

  [[nodiscard]] bool somebody_waits() const;
  pid_t start(const TemplateFrame& root, int mounts, const PolicyFrame& filter, bool user_namespace);
  static void show_memory(pid_t pid, const Zygote& zygote, pid_t trial);

  std::map<pid_t, Zygote> zygotes_;
  std::map<pid_t, pid_t> programs_;           ///< a program to its run's init
  std::map<pid_t, Report> early_;             ///< ends of programs that are not announced yet
  std::map<std::uint32_t, int> failures_;     ///< of a template, one after the other
};

}  // namespace fixpoint::sandbox::detail
