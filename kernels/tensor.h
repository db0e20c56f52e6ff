#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace fixpoint::kernels {

/// Element types of weights, activations and KV. The quantised ones are GGUF's block formats, byte for byte.
enum class DType : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

/// How a type is stored: `block_elements` consecutive values of a row take `block_bytes` bytes.
struct DTypeTraits {
  std::string_view name;
  std::int64_t block_elements;
  std::int64_t block_bytes;
};

[[nodiscard]] const DTypeTraits& traits(DType type);
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view name);

/// Bytes of one row of `elements` values; `elements` must be a whole number of blocks.
[[nodiscard]] std::int64_t row_bytes(DType type, std::int64_t elements);

/// Up to four dimensions, outermost first (row-major): a weight is [out_features, in_features].
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::string to_string() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, 4> dims_{1, 1, 1, 1};
  int rank_ = 0;
};

/// A view of row-major values; owns nothing. Only the outermost dimension may be strided: `row_stride` counts
/// the elements from one index of dimension 0 to the next, so a slice of a fused projection is a Tensor too.
struct Tensor {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t row_stride = 0;

  /// A contiguous view over `data`.
  [[nodiscard]] static Tensor of(void* data, DType dtype, Shape shape);

  [[nodiscard]] std::int64_t rows() const { return shape[0]; }
  /// Elements in one index of dimension 0.
  [[nodiscard]] std::int64_t row_elements() const;
  [[nodiscard]] std::int64_t bytes() const;
  [[nodiscard]] bool contiguous() const { return row_stride == row_elements(); }

  /// Row `i` of an F32 tensor.
  [[nodiscard]] float* row(std::int64_t i) const {
    return reinterpret_cast<float*>(data) + i * row_stride;
  }
};

/// Owns memory that a Backend allocated; gives it back when destroyed.
class Buffer {
 public:
  using Release = void (*)(void* data, std::size_t bytes, void* context);

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Release release, void* context)
      : data_(data), bytes_(bytes), release_(release), context_(context) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// A contiguous view from the buffer's start; the shape must fit.
  [[nodiscard]] Tensor view(DType dtype, Shape shape) const;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace fixpoint::kernels
