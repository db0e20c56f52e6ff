#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/detail/cgroup_counters.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Which controllers the caller wants (a test switches some off).
struct CgroupWish {
  bool memory = true;
  bool processes = true;
  bool cpu = true;
  bool unified = true;
};

/// Where a controller's directories are made, and in which dialect it speaks.
struct CgroupController {
  std::string directory;  ///< our own directory; empty where the controller cannot be used
  bool unified = false;   ///< cgroup v2
  std::string refused;    ///< why it cannot be used

  [[nodiscard]] bool usable() const { return !directory.empty(); }
};

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;
};

/// One run's cgroups, one directory in each hierarchy. Removes them when it dies, which works once they are empty. Holds open only
/// what each run needs: a run's init begins with a copy of all of the broker's descriptors.
class CgroupLeaf {
 public:
  CgroupLeaf() = default;
  CgroupLeaf(CgroupLeaf&&) noexcept = default;
  CgroupLeaf& operator=(CgroupLeaf&& other) noexcept;
  ~CgroupLeaf();

  /// Step::set_cgroup_limits with the errno.
  [[nodiscard]] Failure set_limits(const CgroupLimits& limits);
  [[nodiscard]] const CounterFiles& counters() const { return counters_; }
  /// Makes the empty leaf ready for another run, whose counters start anew. False where it must be removed: v2's peak
  /// cannot be reset, and a leaf that hit a limit or kept memory is not trusted again. Not for one whose run was killed.
  [[nodiscard]] bool recycle();
  /// Kills everything in the leaf, where the kernel can (v2).
  void kill() const;
  /// The same, with most of the processor time that all leaves have together: to end takes some, too. Not to be recycled.
  void kill_first() const;
  /// False where a directory could not be removed: something is still alive in it.
  bool remove();

  /// v1: each gets "0" written by the process that joins.
  [[nodiscard]] std::vector<int> join_descriptors() const;
  /// The same for a process that is not born in the v2 leaf.
  [[nodiscard]] std::vector<int> join_later_descriptors();
  /// v2: clone3's CLONE_INTO_CGROUP; -1 where there is none.
  [[nodiscard]] int unified_directory() const { return unified_.get(); }

 private:
  friend class CgroupTree;
  std::vector<std::string> directories_;
  UniqueFd unified_;             ///< the v2 directory
  std::vector<UniqueFd> join_;
  UniqueFd unified_join_;
  std::string memory_;           ///< directory and dialect of each controller; empty where there is none
  std::string processes_;
  std::string share_;            ///< of processor time
  bool memory_unified_ = false;
  bool share_unified_ = false;
  CounterFiles counters_;
  UniqueFd usage_;
  CgroupLimits current_;
};

/// Our directory in each cgroup hierarchy that can be used: v2 with controllers, v1, both (hybrid) or none. What works is
/// found by trying it: make a leaf, set a limit, read it back.
class CgroupTree {
 public:
  CgroupTree() = default;
  explicit CgroupTree(const CgroupWish& wish);
  CgroupTree(CgroupTree&&) noexcept = default;
  CgroupTree& operator=(CgroupTree&& other) noexcept;
  ~CgroupTree();

  [[nodiscard]] const CgroupController& memory() const { return memory_; }
  [[nodiscard]] const CgroupController& processes() const { return processes_; }
  [[nodiscard]] const CgroupController& cpu() const { return cpu_; }
  [[nodiscard]] const CgroupController& kill() const { return kill_; }

  /// A new empty leaf, or the errno.
  [[nodiscard]] std::optional<CgroupLeaf> make_leaf();

 private:
  void probe();

  void probe_kill(const CgroupLeaf& leaf);

  /// Ours in one hierarchy, locked for as long as we live.
  struct Own {
    std::string directory;
    UniqueFd lock;
  };
  /// Makes our directory in `parent`, or says in `slot` why not.
  bool make_own(const std::string& parent, CgroupController& slot);

  CgroupController memory_, processes_, cpu_, share_, unified_, kill_;
  std::vector<Own> own_;  ///< removed at the end
  std::uint64_t next_ = 0;
};

/// Removes what brokers that no longer exist left behind in `parent`: directories named fixpoint.<pid>.<start time> that nobody
/// has locked.
void sweep_cgroups(const std::string& parent);

/// "fixpoint.<pid>.<start time in clock ticks>" of the calling process.
[[nodiscard]] std::string own_cgroup_name();

}  // namespace fixpoint::sandbox::detail
