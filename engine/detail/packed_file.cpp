#include "engine/detail/packed_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/detail/byte_cursor.h"
#include "engine/detail/content_hash.h"
#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

constexpr std::string_view kMagic = "FXPACKED";
constexpr std::uint64_t kHeaderBytes = 6 * 8;
constexpr std::uint64_t kAlignment = 64;

std::uint64_t aligned(std::uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

std::uint64_t checksum(std::span<const std::byte> directory) {
  ContentHash hash;
  hash.add_bytes(directory);
  return hash.value();
}

std::string read_text(ByteCursor& in, std::string_view what) {
  const auto bytes = in.take(in.read<std::uint32_t>(what), what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
void put(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

/// What a file is called until it is whole, behind its name to be: ".tmp-PID-N".
constexpr std::string_view kUnfinished = ".tmp-";

bool is_unfinished(std::string_view name, std::string_view whole) {
  if (!name.starts_with(whole) || !name.substr(whole.size()).starts_with(kUnfinished)) return false;
  const std::string_view numbers = name.substr(whole.size() + kUnfinished.size());
  const std::size_t dash = numbers.find('-');
  const auto all_digits = [](std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; };
  return dash != numbers.npos && all_digits(numbers.substr(0, dash)) && all_digits(numbers.substr(dash + 1));
}

/// A new file, locked: the lock ends with whoever writes it, however that ends. Below 0 with errno EEXIST where there is such a
/// file, or somebody took this one for a dead writer's before it was locked.
int create_locked(const std::filesystem::path& name) {
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return fd;
  const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // file systems without locks: nobody removes
  struct stat status {};
  if (!taken && ::fstat(fd, &status) == 0 && status.st_nlink > 0) return fd;
  ::close(fd);
  errno = EEXIST;
  return -1;
}

/// Removes an unfinished file that nobody has locked. Only who has its lock removes or renames a file, so what the name means
/// under the lock is what is removed.
void remove_if_abandoned(const std::filesystem::path& name) {
  const int fd = ::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct stat locked {};
  struct stat named {};
  const bool alone = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &locked) == 0 && S_ISREG(locked.st_mode);
  if (alone && ::lstat(name.c_str(), &named) == 0 && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) ::unlink(name.c_str());
  ::close(fd);
}

/// What killed writers of `path` have left beside it.
void remove_abandoned(const std::filesystem::path& path) {
  const std::string whole = path.filename().string();
  std::error_code code;
  std::filesystem::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".", code);
  for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    if (is_unfinished(entry->path().filename().string(), whole)) remove_if_abandoned(entry->path());
  }
}

}  // namespace

std::span<const std::byte> PackedDirectory::find(std::string_view name) const {
  const auto entry = std::ranges::find(entries, name, &PackedEntry::name);
  return entry == entries.end() ? std::span<const std::byte>() : entry->bytes;
}

tl::expected<PackedDirectory, LoadError> parse_packed_directory(std::span<const std::byte> directory, std::span<const std::byte> weights,
                                                                const std::string& name) {
  ByteCursor in(directory, name);
  PackedDirectory out;
  out.key.form = read_text(in, "the form");
  out.key.fingerprint = in.read<std::uint64_t>("the fingerprint");
  const auto count = in.read<std::uint32_t>("the number of weights");
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    PackedEntry entry{read_text(in, "a name"), {}};
    const auto offset = in.read<std::uint64_t>("an offset");
    const auto bytes = in.read<std::uint64_t>("a size");
    if (offset % kAlignment != 0 || offset > weights.size() || bytes > weights.size() - offset) {
      in.set_error(Kind::malformed, "weight " + shown(entry.name) + " has no place in the file");
      break;
    }
    entry.bytes = weights.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
    out.entries.push_back(std::move(entry));
  }
  if (in.ok() && in.remaining() > 0) in.set_error(Kind::malformed, "the directory goes on past its end");
  if (!in.ok()) return tl::unexpected(*in.error());
  return out;
}

tl::expected<PackedDirectory, LoadError> parse_packed_file(std::span<const std::byte> file, const std::string& name) {
  ByteCursor in(file, name);
  const auto magic = in.take(kMagic.size(), "the header");
  const auto version = in.read<std::uint64_t>("the header");
  const auto length = in.read<std::uint64_t>("the header");
  const auto offset = in.read<std::uint64_t>("the header");
  const auto bytes = in.read<std::uint64_t>("the header");
  const auto expected = in.read<std::uint64_t>("the header");
  if (!in.ok()) return tl::unexpected(*in.error());
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) return detail::fail(Kind::malformed, name, at_offset(0), "no packed weights");
  if (version != kPackedFileVersion) return detail::fail(Kind::unsupported, name, "version", std::to_string(version));
  if (length != file.size()) return detail::fail(Kind::truncated, name, "length", "was " + std::to_string(length) + " bytes");
  if (offset > file.size() || bytes != file.size() - offset) return detail::fail(Kind::malformed, name, "directory", "is not at the end");
  const auto directory = file.subspan(static_cast<std::size_t>(offset));
  if (checksum(directory) != expected) return detail::fail(Kind::malformed, name, "directory", "has another checksum");
  return parse_packed_directory(directory, file.first(static_cast<std::size_t>(offset)), name);
}

PackedFileWriter::PackedFileWriter(std::filesystem::path path) : path_(std::move(path)), end_(kHeaderBytes) {
  remove_abandoned(path_);
  for (int i = 0; i < 100 && fd_ < 0; ++i) {
    own_name_ = path_.string() + std::string(kUnfinished) + std::to_string(::getpid()) + "-" + std::to_string(i);
    fd_ = create_locked(own_name_);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) fail("create");
}

PackedFileWriter::~PackedFileWriter() { discard(); }

void PackedFileWriter::discard() {
  if (fd_ < 0) return;
  ::unlink(own_name_.c_str());  // while the name is locked, and so still its own
  ::close(std::exchange(fd_, -1));
}

void PackedFileWriter::fail(const char* call) {
  if (!error_) error_ = LoadError{Kind::io, path_.string(), call, std::generic_category().message(errno)};
  discard();  // a full disk gets its room back at once
}

void PackedFileWriter::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!error_ && !bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void PackedFileWriter::add(std::string_view name, std::span<const std::byte> weight) {
  const std::uint64_t offset = aligned(end_);
  write(weight, offset);
  placed_.push_back({std::string(name), offset, weight.size()});
  end_ = offset + weight.size();
}

std::string PackedFileWriter::directory(const PackedKey& key) const {
  std::string out;
  put_text(out, key.form);
  put(out, key.fingerprint);
  put(out, static_cast<std::uint32_t>(placed_.size()));
  for (const Placed& weight : placed_) {
    put_text(out, weight.name);
    put(out, weight.offset);
    put(out, weight.bytes);
  }
  return out;
}

std::optional<LoadError> PackedFileWriter::commit(const PackedKey& key) {
  const std::string text = directory(key);
  const auto bytes = std::as_bytes(std::span(text));
  std::string header(kMagic);
  for (const std::uint64_t number : {kPackedFileVersion, end_ + bytes.size(), end_, std::uint64_t{bytes.size()}, checksum(bytes)}) {
    put(header, number);
  }
  write(bytes, end_);
  write(std::as_bytes(std::span(header)), 0);
  if (!error_ && ::fsync(fd_) != 0) fail("fsync");
  if (!error_ && ::rename(own_name_.c_str(), path_.c_str()) != 0) fail("rename");
  if (!error_) ::close(std::exchange(fd_, -1));
  return error_;
}

}  // namespace fixpoint::engine::detail
