#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/load_error.h"

/// The file that a model's packed weights are kept in. Little-endian:
///
///   header     "FXPACKED", then as u64: version, length of the file, offset and length of the directory, its ContentHash
///   weights    each at a multiple of 64
///   directory  text form, u64 fingerprint, u32 number of weights; of each: text name, u64 offset, u64 bytes.
///              A text is a u32 length and that many bytes
///
/// The weights have no checksum: it would mean to read them all. Any bytes are numbers to the kernels, as those of a model
/// file are.
namespace fixpoint::engine::detail {

constexpr std::uint64_t kPackedFileVersion = 1;

/// Whose weights a file holds.
struct PackedKey {
  std::string form;               ///< Backend::packed_form
  std::uint64_t fingerprint = 0;  ///< ModelFile::fingerprint
  bool operator==(const PackedKey&) const = default;
};

struct PackedEntry {
  std::string name;
  std::span<const std::byte> bytes;  ///< of the file, on a multiple of 64 from its start
};

struct PackedDirectory {
  PackedKey key;
  std::vector<PackedEntry> entries;

  /// Empty where there is none of this name.
  [[nodiscard]] std::span<const std::byte> find(std::string_view name) const;
};

/// Entries point into `file`. `name`: for the error.
[[nodiscard]] tl::expected<PackedDirectory, LoadError> parse_packed_file(std::span<const std::byte> file, const std::string& name);
/// The directory alone, whose entries must lie in `weights`, the file up to it.
[[nodiscard]] tl::expected<PackedDirectory, LoadError> parse_packed_directory(std::span<const std::byte> directory,
                                                                              std::span<const std::byte> weights, const std::string& name);

/// Writes such a file under a name of its own beside `path`, and gives it that name when it is whole and on the disk: who
/// opens `path` finds a whole file or none. Of several who write at once the last one's stays. One that dies before its
/// commit leaves nothing behind; what one whose process was killed has left, the next one removes.
class PackedFileWriter {
 public:
  explicit PackedFileWriter(std::filesystem::path path);
  PackedFileWriter(const PackedFileWriter&) = delete;
  PackedFileWriter& operator=(const PackedFileWriter&) = delete;
  ~PackedFileWriter();

  /// Nothing is written after a failure; `commit` tells the first one.
  void add(std::string_view name, std::span<const std::byte> weight);
  [[nodiscard]] std::optional<LoadError> commit(const PackedKey& key);

 private:
  struct Placed {
    std::string name;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  void write(std::span<const std::byte> bytes, std::uint64_t offset);
  [[nodiscard]] std::string directory(const PackedKey& key) const;
  void fail(const char* call);
  void discard();

  std::filesystem::path path_;
  std::filesystem::path own_name_;
  int fd_ = -1;
  std::uint64_t end_;  ///< of what is written
  std::vector<Placed> placed_;
  std::optional<LoadError> error_;
};

}  // namespace fixpoint::engine::detail
