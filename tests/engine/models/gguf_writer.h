#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::test_models {

/// Builds a GGUF file in memory, in the order of the calls. It checks nothing, so that hostile files can be made too.
class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3, std::uint32_t alignment = 32) : version_(version), alignment_(alignment) {}

  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, std::uint32_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void strings(std::string_view key, std::span<const std::string> values);
  void floats(std::string_view key, std::span<const float> values);
  void i32s(std::string_view key, std::span<const std::int32_t> values);
  /// A pair whose type and bytes are the caller's.
  void raw(std::string_view key, std::uint32_t type, std::span<const std::byte> value);

  /// `dims` as the file has them: the contiguous one first. The data is placed at the next aligned offset.
  void tensor(std::string_view name, std::uint32_t type, std::span<const std::uint64_t> dims, std::span<const std::byte> data);
  /// A directory entry alone, with any offset.
  void entry(std::string_view name, std::uint32_t type, std::span<const std::uint64_t> dims, std::uint64_t offset);

  [[nodiscard]] std::vector<std::byte> bytes() const;

 private:
  std::uint32_t version_, alignment_;
  std::uint64_t num_pairs_ = 0, num_tensors_ = 0;
  std::vector<std::byte> pairs_, directory_, data_;
};

}  // namespace fixpoint::test_models
