#pragma once

#include <cstddef>
#include <span>

#include "sandbox/detail/frame.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// A root file system that runs share: as it was described, and made when it is first needed.
class PreparedRoot {
 public:
  PreparedRoot() = default;
  /// `whole`: the frame as it came. Its files are needed once, and every init is a copy of this process, to be made and taken
  /// down: they stay out of its memory.
  PreparedRoot(TemplateFrame frame, std::span<const std::byte> whole);

  /// Makes its mounts where they do not stand yet.
  [[nodiscard]] Failure make(bool user_namespace);
  /// As it was described, perhaps without its files.
  [[nodiscard]] const TemplateFrame& description() const { return frame_; }
  /// The mount namespace that holds it, after make.
  [[nodiscard]] int mounts() const { return mounts_.get(); }

 private:
  TemplateFrame frame_;
  UniqueFd whole_;       ///< valid until it is made
  UniqueFd mounts_;
};

}  // namespace fixpoint::sandbox::detail
