#include "sandbox/detail/box_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace fixpoint::sandbox::detail {

namespace {

UniqueFd open_beneath(int directory, const std::string& path, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
}

bool make_parents(int box, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    const std::size_t last = parent.rfind('/');
    const UniqueFd above = open_beneath(box, last == std::string::npos ? "." : parent.substr(0, last),
                                        O_PATH | O_DIRECTORY, 0);
    if (!above.valid()) return false;
    if (::mkdirat(above.get(), parent.substr(last == std::string::npos ? 0 : last + 1).c_str(), 0755) != 0 &&
        errno != EEXIST) {
      return false;
    }
  }
  return true;
}

bool write_all(int target, const std::string& content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t written = ::write(target, content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

/// The source's position is not touched: other runs read it at the same time.
bool copy_all(int target, int source) {
  struct stat status {};
  if (::fstat(source, &status) != 0) return false;
  off_t done = 0;
  while (done < status.st_size) {
    const ssize_t copied = ::sendfile(target, source, &done, static_cast<std::size_t>(status.st_size - done));
    if (copied < 0 && errno == EINTR) continue;
    if (copied == 0) errno = EIO;
    if (copied <= 0) return false;
  }
  return true;
}

}  // namespace

Failure write_inputs(int box, const std::vector<FrameFile>& files, int first) {
  if (fault_at(Step::write_files)) return {Step::write_files, errno};
  for (const FrameFile& file : files) {
    if (!make_parents(box, file.path)) return {Step::write_files, errno};
    const UniqueFd target = open_beneath(box, file.path, O_WRONLY | O_CREAT | O_EXCL, file.executable ? 0555 : 0444);
    if (!target.valid()) return {Step::write_files, errno};
    const bool copied = first >= 0 && &file == &files.front();
    if (!(copied ? copy_all(target.get(), first) : write_all(target.get(), file.content))) return {Step::write_files, errno};
  }
  return {};
}

Collected open_output(int box, const std::string& path) {
  Collected collected;
  collected.file = open_beneath(box, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  struct stat status {};
  if (!collected.file.valid() || ::fstat(collected.file.get(), &status) != 0) {
    collected.error = errno;
  } else if (!S_ISREG(status.st_mode)) {
    collected.error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  } else if (status.st_nlink != 1) {
    collected.error = EMLINK;
  }
  collected.size = static_cast<std::uint64_t>(status.st_size);
  if (collected.error != 0) collected.file.reset();
  return collected;
}

}  // namespace fixpoint::sandbox::detail
