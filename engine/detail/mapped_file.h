#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <tl/expected.hpp>

#include "engine/load_error.h"

namespace fixpoint::engine::detail {

/// A regular file, mapped read-only for as long as this lives. Moving keeps the address. The file must not shrink while it
/// is mapped: a read past its new end would end the process (SIGBUS), as with any mapping.
class MappedFile {
 public:
  [[nodiscard]] static tl::expected<MappedFile, LoadError> open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// When it was last changed as it was opened, since the epoch.
  [[nodiscard]] std::chrono::nanoseconds modified() const { return modified_; }
  /// Asks for large pages, where the file's system has them. A file that is read over and over is read faster from them.
  void prefer_large_pages() const;
  /// Gives back the memory of the whole pages within `part`, as far as it lies in this file; they are read again when
  /// touched. What the system has cached of the file stays cached.
  void let_go(std::span<const std::byte> part) const;

 private:
  MappedFile(const std::byte* data, std::size_t size, std::chrono::nanoseconds modified)
      : data_(data), size_(size), modified_(modified) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::chrono::nanoseconds modified_{};
};

}  // namespace fixpoint::engine::detail
