#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "engine/load_error.h"
#include "kernels/tensor.h"

namespace fixpoint::engine::detail {

/// Types of metadata values; the numbers are the file format's.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// An array as it stands in the file; its elements are read when somebody asks for them.
struct GgufArray {
  GgufType type = GgufType::u8;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;
};

/// Unsigned integers widen to uint64, signed ones to int64, floats to double.
using GgufValue = std::variant<bool, std::uint64_t, std::int64_t, double, std::string_view, GgufArray>;

struct GgufTensor {
  std::string_view name;
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;      ///< row-major: the file's dimensions, reversed
  std::uint64_t offset = 0;  ///< from the start of the file
  std::uint64_t bytes = 0;
};

/// The directory of a GGUF file, v2 or v3. Views point into the bytes it was parsed from.
struct Gguf {
  std::uint32_t version = 0;
  std::unordered_map<std::string_view, GgufValue> metadata;
  std::vector<GgufTensor> tensors;  ///< in the file's order

  [[nodiscard]] const GgufValue* find(std::string_view key) const;
};

/// Checks everything that the file says about itself: every count, length and offset against the file's size, duplicate
/// names, alignment, tensors that overlap. Costs time and memory in proportion to the directory, whatever it claims.
[[nodiscard]] tl::expected<Gguf, LoadError> parse_gguf(std::span<const std::byte> file, const std::string& name);

/// Elements of an array of that type, which parse_gguf has checked; empty for an array of another type.
[[nodiscard]] std::vector<std::string_view> strings_of(const GgufArray& array);
[[nodiscard]] std::vector<float> floats_of(const GgufArray& array);
[[nodiscard]] std::vector<std::int64_t> integers_of(const GgufArray& array);  ///< any integer type but u64

}  // namespace fixpoint::engine::detail
