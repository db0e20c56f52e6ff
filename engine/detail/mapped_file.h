#pragma once

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
  /// Gives back the memory of the whole pages within `part`, as far as it lies in this file; they are read again when
  /// touched. What the system has cached of the file stays cached.
  void let_go(std::span<const std::byte> part) const;

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fixpoint::engine::detail
