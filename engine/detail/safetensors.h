#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/load_error.h"
#include "kernels/tensor.h"

namespace fixpoint::engine::detail {

struct SafeTensor {
  std::string name;
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;
  std::uint64_t offset = 0;  ///< from the start of the file
  std::uint64_t bytes = 0;
};

/// The directory of a safetensors file: a header of JSON, then data that the tensors cover without holes or overlaps,
/// which this checks, as it does types, shapes and alignment. In the order of their offsets.
[[nodiscard]] tl::expected<std::vector<SafeTensor>, LoadError> parse_safetensors(std::span<const std::byte> file,
                                                                                 const std::string& name);

}  // namespace fixpoint::engine::detail
