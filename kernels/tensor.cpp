#include "kernels/tensor.h"

#include <stdexcept>
#include <utility>

namespace fixpoint::kernels {
namespace {

constexpr std::array<DTypeTraits, 11> kTraits{{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"Q8_0", 32, 34},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
}};

}  // namespace

const DTypeTraits& traits(DType type) { return kTraits[static_cast<std::size_t>(type)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t row_bytes(DType type, std::int64_t elements) {
  const auto& t = traits(type);
  if (elements % t.block_elements != 0) {
    throw std::invalid_argument("row of " + std::to_string(elements) + " elements is no whole number of " +
                                std::string(t.name) + " blocks");
  }
  return elements / t.block_elements * t.block_bytes;
}

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  if (dims.size() > dims_.size()) throw std::invalid_argument("a shape has at most four dimensions");
  for (auto d : dims) dims_[static_cast<std::size_t>(rank_++)] = d;
}

std::int64_t Shape::elements() const { return dims_[0] * dims_[1] * dims_[2] * dims_[3]; }

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string((*this)[i]);
  return text + "]";
}

Tensor Tensor::of(void* data, DType dtype, Shape shape) {
  Tensor t{static_cast<std::byte*>(data), dtype, shape, 0};
  t.row_stride = t.row_elements();
  return t;
}

std::int64_t Tensor::row_elements() const { return shape[1] * shape[2] * shape[3]; }

std::int64_t Tensor::bytes() const {
  // A vector is one row for the block types: its elements lie in dimension 0.
  if (shape.rank() <= 1) return row_bytes(dtype, shape[0]);
  return shape[0] * row_bytes(dtype, row_elements());
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      release_(std::exchange(other.release_, nullptr)),
      context_(std::exchange(other.context_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(release_, other.release_);
  std::swap(context_, other.context_);
  return *this;
}

Buffer::~Buffer() {
  if (release_ != nullptr && data_ != nullptr) release_(data_, bytes_, context_);
}

Tensor Buffer::view(DType dtype, Shape shape) const {
  auto t = Tensor::of(data_, dtype, shape);
  if (static_cast<std::size_t>(t.bytes()) > bytes_) {
    throw std::invalid_argument("view " + shape.to_string() + " is larger than its buffer");
  }
  return t;
}

}  // namespace fixpoint::kernels
