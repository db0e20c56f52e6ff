#include "engine/detail/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

auto io_error(const std::filesystem::path& path, const char* call) {
  return fail(LoadError::Kind::io, path.string(), call, std::generic_category().message(errno));
}

}  // namespace

tl::expected<MappedFile, LoadError> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return io_error(path, "open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return io_error(path, "stat");
  if (!S_ISREG(status.st_mode)) return fail(LoadError::Kind::io, path.string(), "open", "not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile();
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return io_error(path, "mmap");
  const auto modified = std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return MappedFile(static_cast<const std::byte*>(data), size, modified);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), modified_(other.modified_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(modified_, other.modified_);
  return *this;
}

void MappedFile::let_go(std::span<const std::byte> part) const {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = std::max(reinterpret_cast<std::uintptr_t>(part.data()), reinterpret_cast<std::uintptr_t>(data_));
  const auto last = std::min(reinterpret_cast<std::uintptr_t>(part.data()) + part.size(), reinterpret_cast<std::uintptr_t>(data_) + size_);
  const std::uintptr_t begin = (first + page - 1) / page * page;
  const std::uintptr_t end = last / page * page;
  // Best effort: what can't be given back stays.
  if (begin < end) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
}

void MappedFile::prefer_large_pages() const {
  // Best effort, too.
  if (data_ != nullptr) static_cast<void>(::madvise(const_cast<std::byte*>(data_), size_, MADV_HUGEPAGE));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace fixpoint::engine::detail
