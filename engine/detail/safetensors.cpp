#include "engine/detail/safetensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/detail/byte_cursor.h"
#include "engine/detail/config_limits.h"
#include "engine/detail/fail.h"
#include "engine/detail/json_document.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;
using kernels::DType;
using kernels::Shape;

constexpr std::uint64_t kLongestHeader = 100'000'000;

std::optional<std::uint64_t> unsigned_of(const Json& value) {
  return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

/// Up to four dimensions, none of them 0; a scalar counts as one element.
std::optional<Shape> shape_of(const Json& dims) {
  if (!dims.is_array() || dims.size() > 4) return std::nullopt;
  std::array<std::int64_t, 4> d{1, 1, 1, 1};
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto dim = unsigned_of(dims[i]);
    if (!dim || *dim == 0 || *dim > kMostElements / elements) return std::nullopt;
    elements *= *dim;
    d[i] = static_cast<std::int64_t>(*dim);
  }
  switch (dims.size()) {
    case 0:
    case 1: return Shape{d[0]};
    case 2: return Shape{d[0], d[1]};
    case 3: return Shape{d[0], d[1], d[2]};
    default: return Shape{d[0], d[1], d[2], d[3]};
  }
}

std::optional<DType> dtype_of(const std::string& name) {
  for (const auto type : {DType::f32, DType::f16, DType::bf16}) {
    if (kernels::traits(type).name == name) return type;
  }
  return std::nullopt;
}

/// One entry of the header; its offset still counts from the start of the data.
tl::expected<SafeTensor, LoadError> read_entry(const std::string& name, const Json& entry, const std::string& file) {
  const auto wrong = [&](Kind kind, std::string what) { return fail(kind, file, "tensor " + shown(name), std::move(what)); };
  const auto field = [&](const char* key) {
    const auto it = entry.is_object() ? entry.find(key) : entry.end();
    return it == entry.end() ? nullptr : &*it;
  };
  const auto* dtype = field("dtype");
  const auto* dims = field("shape");
  const auto* offsets = field("data_offsets");
  if (dtype == nullptr || !dtype->is_string()) return wrong(Kind::malformed, "has no dtype");
  const auto type = dtype_of(dtype->get_ref<const std::string&>());
  if (!type) {
    return wrong(Kind::unsupported, "type " + shown(dtype->get_ref<const std::string&>()) + " is not supported (F32, F16 and BF16 are)");
  }
  const auto shape = dims == nullptr ? std::nullopt : shape_of(*dims);
  if (!shape) return wrong(Kind::malformed, "its shape must be a list of up to four sizes above 0");
  if (offsets == nullptr || !offsets->is_array() || offsets->size() != 2) {
    return wrong(Kind::malformed, "its data_offsets must be two numbers");
  }
  const auto begin = unsigned_of((*offsets)[0]);
  const auto end = unsigned_of((*offsets)[1]);
  const auto bytes = static_cast<std::uint64_t>(shape->elements() * kernels::traits(*type).block_bytes);
  if (!begin || !end || *end < *begin || *end - *begin != bytes) {
    return wrong(Kind::malformed, "its data_offsets do not span the " + std::to_string(bytes) + " bytes of " + shape->to_string());
  }
  return SafeTensor{name, *type, *shape, *begin, bytes};
}

/// The tensors must follow each other and end where the file does.
std::optional<LoadError> place(std::vector<SafeTensor>& tensors, std::uint64_t start, std::span<const std::byte> file,
                               const std::string& name) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  const std::uint64_t room = file.size() - start;
  std::uint64_t covered = 0;
  for (auto& t : tensors) {
    const auto wrong = [&](Kind kind, std::string what) { return LoadError{kind, name, "tensor " + shown(t.name), std::move(what)}; };
    if (t.offset != covered) {
      return wrong(Kind::malformed, "begins at data offset " + std::to_string(t.offset) + ", the tensor before it ends at " +
                                        std::to_string(covered));
    }
    if (t.bytes > room - covered) {
      return wrong(Kind::truncated, std::to_string(t.bytes) + " bytes at data offset " + std::to_string(t.offset) +
                                        " end past the file's data (" + std::to_string(room) + " bytes)");
    }
    covered += t.bytes;
    t.offset += start;
    const auto size = static_cast<std::uintptr_t>(kernels::traits(t.dtype).block_bytes);
    if (reinterpret_cast<std::uintptr_t>(file.data() + t.offset) % size != 0) {
      return wrong(Kind::malformed, "is not aligned: its elements of " + std::to_string(size) + " bytes begin at offset " +
                                        std::to_string(t.offset));
    }
  }
  if (covered != room) {
    return LoadError{Kind::malformed, name, at_offset(start + covered),
                     std::to_string(room - covered) + " bytes belong to no tensor"};
  }
  return std::nullopt;
}

}  // namespace

tl::expected<std::vector<SafeTensor>, LoadError> parse_safetensors(std::span<const std::byte> file, const std::string& name) {
  ByteCursor in(file, name);
  const auto length = in.read<std::uint64_t>("the header's length");
  if (in.ok() && length > kLongestHeader) {
    return fail(Kind::malformed, name, at_offset(0), "no safetensors file: a header of " + std::to_string(length) + " bytes");
  }
  const auto text = in.take(length, "the header");
  if (!in.ok()) return tl::unexpected(*in.error());
  const auto header = parse_json(text, name, DuplicateKeys::refuse);
  if (!header) return tl::unexpected(header.error());
  if (!header->is_object()) return fail(Kind::malformed, name, at_offset(8), "the header is no JSON object");
  std::vector<SafeTensor> tensors;
  for (const auto& [key, entry] : header->items()) {
    if (key == "__metadata__") continue;
    auto tensor = read_entry(key, entry, name);
    if (!tensor) return tl::unexpected(std::move(tensor.error()));
    tensors.push_back(std::move(*tensor));
  }
  if (auto error = place(tensors, in.offset(), file, name)) return tl::unexpected(std::move(*error));
  return tensors;
}

}  // namespace fixpoint::engine::detail
