#include "sandbox/detail/prepared_root.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>
#include <variant>
#include <vector>

#include "sandbox/detail/channel.h"
#include "sandbox/detail/rootfs.h"

namespace fixpoint::sandbox::detail {

PreparedRoot::PreparedRoot(TemplateFrame frame, std::span<const std::byte> whole)
    : whole_(frame.files.empty() ? UniqueFd() : make_memory_file("fixpoint-template", whole, false)) {
  if (whole_.valid()) frame.files = {};
  frame_ = std::move(frame);
}

Failure PreparedRoot::make(bool user_namespace) {
  if (mounts_.valid()) return {};
  std::vector<FrameFile> files = frame_.files;
  if (whole_.valid()) {
    Message message;
    message.descriptors.emplace_back(::fcntl(whole_.get(), F_DUPFD_CLOEXEC, 16));
    auto frame = unfold_frame(message) ? parse_frame(message.bytes) : tl::unexpected(FrameError{});
    if (!frame || !std::holds_alternative<TemplateFrame>(*frame)) return {Step::prepare_template, EBADMSG};
    files = std::move(std::get<TemplateFrame>(*frame).files);
  }
  RootTemplate built = build_root(frame_.roots, files, user_namespace);
  if (built.failure) return built.failure;
  mounts_ = std::move(built.mount_namespace);
  whole_.reset();
  return {};
}

}  // namespace fixpoint::sandbox::detail
