#include "engine/detail/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "engine/detail/byte_cursor.h"
#include "engine/detail/config_limits.h"
#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;
using kernels::DType;

constexpr std::uint32_t kMagic = 0x46554747;         // "GGUF"
constexpr std::uint32_t kMagicSwapped = 0x47475546;  // "FUGG"
constexpr std::size_t kLongestTensorName = 64;
// The smallest things that these can be in a file: empty key, type, one byte; empty name, rank, one dimension, type, offset.
constexpr std::uint64_t kSmallestPair = 8 + 4 + 1;
constexpr std::uint64_t kSmallestTensor = 8 + 4 + 8 + 4 + 8;

struct TypeName {
  std::uint32_t id;
  std::string_view name;
  std::optional<DType> dtype;
};

/// Every type that files hold; those without a DType are named in the error.
constexpr std::array<TypeName, 33> kTensorTypes{{
    {0, "F32", DType::f32},   {1, "F16", DType::f16},   {2, "Q4_0", DType::q4_0}, {3, "Q4_1", DType::q4_1},
    {6, "Q5_0", DType::q5_0}, {7, "Q5_1", DType::q5_1}, {8, "Q8_0", DType::q8_0}, {9, "Q8_1", {}},
    {10, "Q2_K", {}},         {11, "Q3_K", {}},         {12, "Q4_K", DType::q4_k}, {13, "Q5_K", DType::q5_k},
    {14, "Q6_K", DType::q6_k}, {15, "Q8_K", {}},        {16, "IQ2_XXS", {}},      {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},      {19, "IQ1_S", {}},        {20, "IQ4_NL", {}},       {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},        {23, "IQ4_XS", {}},       {24, "I8", {}},           {25, "I16", {}},
    {26, "I32", {}},          {27, "I64", {}},          {28, "F64", {}},          {29, "IQ1_M", {}},
    {30, "BF16", DType::bf16}, {34, "TQ1_0", {}},       {35, "TQ2_0", {}},        {39, "MXFP4", {}},
    {40, "NVFP4", {}},
}};

/// Bytes of a fixed-size metadata value; 0 for strings, arrays and unknown types.
std::size_t size_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    case GgufType::string:
    case GgufType::array: return 0;
  }
  return 0;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view read_string(ByteCursor& in, std::string_view what) {
  const auto length = in.read<std::uint64_t>(what);
  return text_of(in.take(length, what));
}

GgufArray read_array(ByteCursor& in, std::string_view key) {
  GgufArray array;
  const auto type = in.read<std::uint32_t>("array type");
  array.type = static_cast<GgufType>(type);
  array.count = in.read<std::uint64_t>("array length");
  const auto what = "array " + shown(key);
  if (array.type == GgufType::string) {
    if (array.count > in.remaining() / sizeof(std::uint64_t)) {
      in.set_error(Kind::malformed, what + ": " + std::to_string(array.count) + " strings cannot be in the " +
                                        std::to_string(in.remaining()) + " bytes that follow");
      return array;
    }
    const auto start = in;
    for (std::uint64_t i = 0; i < array.count && in.ok(); ++i) static_cast<void>(read_string(in, what));
    auto whole = start;
    if (in.ok()) array.bytes = whole.take(in.offset() - start.offset(), what);
    return array;
  }
  const auto size = size_of(array.type);
  if (array.type == GgufType::array) {
    in.set_error(Kind::unsupported, what + ": arrays inside arrays are not supported");
  } else if (size == 0) {
    in.set_error(Kind::malformed, what + ": unknown element type " + std::to_string(type));
  } else if (array.count > in.remaining() / size) {
    in.set_error(Kind::truncated, what + ": " + std::to_string(array.count) + " elements cannot be in the " +
                                      std::to_string(in.remaining()) + " bytes that follow");
  } else {
    array.bytes = in.take(array.count * size, what);
  }
  return array;
}

GgufValue read_value(ByteCursor& in, std::string_view key) {
  const auto type = in.read<std::uint32_t>("value type");
  switch (static_cast<GgufType>(type)) {
    case GgufType::u8: return std::uint64_t{in.read<std::uint8_t>(key)};
    case GgufType::u16: return std::uint64_t{in.read<std::uint16_t>(key)};
    case GgufType::u32: return std::uint64_t{in.read<std::uint32_t>(key)};
    case GgufType::u64: return in.read<std::uint64_t>(key);
    case GgufType::i8: return std::int64_t{in.read<std::int8_t>(key)};
    case GgufType::i16: return std::int64_t{in.read<std::int16_t>(key)};
    case GgufType::i32: return std::int64_t{in.read<std::int32_t>(key)};
    case GgufType::i64: return in.read<std::int64_t>(key);
    case GgufType::f32: return double{in.read<float>(key)};
    case GgufType::f64: return in.read<double>(key);
    case GgufType::boolean: return in.read<std::uint8_t>(key) != 0;
    case GgufType::string: return read_string(in, key);
    case GgufType::array: return read_array(in, key);
  }
  in.set_error(Kind::malformed, shown(key) + ": unknown value type " + std::to_string(type));
  return false;
}

void read_header(ByteCursor& in, Gguf& out) {
  constexpr std::size_t kMagicAt = 0, kVersionAt = 4;
  const auto magic = in.read<std::uint32_t>("the magic number");
  const auto version = in.read<std::uint32_t>("the version");
  if (!in.ok()) return;
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (magic == kMagicSwapped || (magic == kMagic && version > 0xFFFF && swapped <= 0xFFFF)) {
    in.set_error_at(magic == kMagic ? kVersionAt : kMagicAt, Kind::unsupported, "the file is big-endian (GGUF v" + std::to_string(swapped) +
                                        "); only little-endian files can be read");
  } else if (magic != kMagic) {
    in.set_error_at(kMagicAt, Kind::malformed, "no GGUF file: it does not begin with 'GGUF'");
  } else if (version != 2 && version != 3) {
    in.set_error_at(kVersionAt, Kind::unsupported, "GGUF v" + std::to_string(version) + " is not supported (v2 and v3 are)");
  }
  out.version = version;
}

void read_metadata(ByteCursor& in, std::uint64_t count, Gguf& out) {
  if (count > in.remaining() / kSmallestPair) {
    in.set_error(Kind::malformed, std::to_string(count) + " metadata pairs cannot be in the " +
                                      std::to_string(in.remaining()) + " bytes that follow");
  }
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    const auto key = read_string(in, "metadata key");
    auto value = read_value(in, key);
    if (!in.ok()) return;
    if (!out.metadata.emplace(key, std::move(value)).second) {
      in.set_error(Kind::malformed, "the metadata key " + shown(key) + " is there twice");
    }
  }
}

std::optional<kernels::Shape> read_shape(ByteCursor& in, std::string_view tensor) {
  const auto rank = in.read<std::uint32_t>("rank");
  if (!in.ok()) return std::nullopt;
  if (rank < 1 || rank > 4) {
    in.set_error(Kind::malformed, "tensor " + shown(tensor) + ": " + std::to_string(rank) + " dimensions (1 to 4 are possible)");
    return std::nullopt;
  }
  std::array<std::int64_t, 4> dims{};
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto dim = in.read<std::uint64_t>("dimension");
    if (!in.ok()) return std::nullopt;
    if (dim == 0 || dim > kMostElements / elements) {
      in.set_error(Kind::malformed, "tensor " + shown(tensor) + ": dimension " + std::to_string(i) + " is " +
                                        std::to_string(dim) + ", which no tensor can have");
      return std::nullopt;
    }
    elements *= dim;
    dims[rank - 1 - i] = static_cast<std::int64_t>(dim);
  }
  switch (rank) {
    case 1: return kernels::Shape{dims[0]};
    case 2: return kernels::Shape{dims[0], dims[1]};
    case 3: return kernels::Shape{dims[0], dims[1], dims[2]};
    default: return kernels::Shape{dims[0], dims[1], dims[2], dims[3]};
  }
}

std::optional<DType> read_tensor_type(ByteCursor& in, std::string_view tensor) {
  const auto id = in.read<std::uint32_t>("tensor type");
  if (!in.ok()) return std::nullopt;
  const auto* known = std::find_if(kTensorTypes.begin(), kTensorTypes.end(), [&](const auto& t) { return t.id == id; });
  if (known == kTensorTypes.end()) {
    in.set_error(Kind::malformed, "tensor " + shown(tensor) + ": unknown type " + std::to_string(id));
    return std::nullopt;
  }
  if (!known->dtype) {
    in.set_error(Kind::unsupported, "tensor " + shown(tensor) + ": type " + std::string(known->name) + " is not supported");
  }
  return known->dtype;
}

/// One entry of the tensor directory; its offset still counts from the start of the data.
void read_tensor(ByteCursor& in, Gguf& out) {
  GgufTensor tensor;
  tensor.name = read_string(in, "tensor name");
  if (in.ok() && tensor.name.size() > kLongestTensorName) {
    in.set_error(Kind::malformed, "tensor name " + shown(tensor.name) + " is longer than " +
                                      std::to_string(kLongestTensorName) + " bytes");
  }
  const auto shape = read_shape(in, tensor.name);
  if (!shape) return;
  const auto dtype = read_tensor_type(in, tensor.name);
  if (!dtype) return;
  tensor.shape = *shape;
  tensor.dtype = *dtype;
  tensor.offset = in.read<std::uint64_t>("tensor offset");
  const auto& block = kernels::traits(*dtype);
  const auto row = shape->operator[](shape->rank() - 1);
  if (row % block.block_elements != 0) {
    in.set_error(Kind::malformed, "tensor " + shown(tensor.name) + ": rows of " + std::to_string(row) +
                                      " elements are no whole number of " + std::string(block.name) + " blocks");
    return;
  }
  // At most 2^60 elements of at most 4 bytes each: no overflow.
  tensor.bytes = static_cast<std::uint64_t>(shape->elements() / block.block_elements) *
                 static_cast<std::uint64_t>(block.block_bytes);
  out.tensors.push_back(tensor);
}

void read_tensors(ByteCursor& in, std::uint64_t count, Gguf& out) {
  if (count > in.remaining() / kSmallestTensor) {
    in.set_error(Kind::malformed, std::to_string(count) + " tensors cannot be in the " + std::to_string(in.remaining()) +
                                      " bytes that follow");
  }
  std::unordered_set<std::string_view> names;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    read_tensor(in, out);
    if (in.ok() && !names.insert(out.tensors.back().name).second) {
      in.set_error(Kind::malformed, "the tensor " + shown(out.tensors.back().name) + " is there twice");
    }
  }
}

tl::expected<std::uint64_t, LoadError> alignment_of(const Gguf& gguf, const std::string& name) {
  const auto* value = gguf.find("general.alignment");
  if (value == nullptr) return 32;
  const auto* number = std::get_if<std::uint64_t>(value);
  if (number == nullptr || *number < 8 || *number > (1U << 20) || (*number & (*number - 1)) != 0) {
    return fail(Kind::malformed, name, "metadata 'general.alignment'", "must be a power of two, at least 8");
  }
  return *number;
}

/// Turns offsets into places in the file, and checks that each tensor lies in it, aligned.
std::optional<LoadError> place_tensors(Gguf& gguf, std::uint64_t directory_end, std::uint64_t alignment, std::uint64_t file_size,
                                       const std::string& name) {
  const std::uint64_t start = (directory_end + alignment - 1) / alignment * alignment;
  for (auto& tensor : gguf.tensors) {
    const auto where = "tensor " + shown(tensor.name);
    if (tensor.offset % alignment != 0) {
      return LoadError{Kind::malformed, name, where,
                       "its offset " + std::to_string(tensor.offset) + " is no multiple of " + std::to_string(alignment)};
    }
    const std::uint64_t room = file_size > start ? file_size - start : 0;
    if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
      return LoadError{Kind::truncated, name, where,
                       std::to_string(tensor.bytes) + " bytes at data offset " + std::to_string(tensor.offset) +
                           " end past the file's data (" + std::to_string(room) + " bytes)"};
    }
    tensor.offset += start;
  }
  return std::nullopt;
}

std::optional<LoadError> find_overlap(const Gguf& gguf, const std::string& name) {
  std::vector<std::size_t> order(gguf.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return gguf.tensors[a].offset < gguf.tensors[b].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& before = gguf.tensors[order[i - 1]];
    const auto& tensor = gguf.tensors[order[i]];
    if (tensor.offset < before.offset + before.bytes) {
      return LoadError{Kind::malformed, name, "tensor " + shown(tensor.name),
                       "begins at offset " + std::to_string(tensor.offset) + ", inside tensor " + shown(before.name)};
    }
  }
  return std::nullopt;
}

template <class T>
std::vector<std::int64_t> widen(std::span<const std::byte> bytes) {
  std::vector<std::int64_t> out(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<std::int64_t>(value);
  }
  return out;
}

}  // namespace

const GgufValue* Gguf::find(std::string_view key) const {
  const auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : &it->second;
}

tl::expected<Gguf, LoadError> parse_gguf(std::span<const std::byte> file, const std::string& name) {
  ByteCursor in(file, name);
  Gguf out;
  read_header(in, out);
  const auto num_tensors = in.read<std::uint64_t>("the tensor count");
  const auto num_pairs = in.read<std::uint64_t>("the metadata count");
  if (in.ok()) read_metadata(in, num_pairs, out);
  if (in.ok()) read_tensors(in, num_tensors, out);
  if (!in.ok()) return tl::unexpected(*in.error());
  const auto alignment = alignment_of(out, name);
  if (!alignment) return tl::unexpected(alignment.error());
  if (auto error = place_tensors(out, in.offset(), *alignment, file.size(), name)) return tl::unexpected(*error);
  if (auto error = find_overlap(out, name)) return tl::unexpected(*error);
  return out;
}

std::vector<std::string_view> strings_of(const GgufArray& array) {
  if (array.type != GgufType::string) return {};
  std::vector<std::string_view> out;
  out.reserve(static_cast<std::size_t>(array.count));
  auto rest = array.bytes;
  while (rest.size() >= sizeof(std::uint64_t)) {
    std::uint64_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    out.push_back(text_of(rest.subspan(sizeof length, static_cast<std::size_t>(length))));
    rest = rest.subspan(sizeof length + static_cast<std::size_t>(length));
  }
  return out;
}

std::vector<float> floats_of(const GgufArray& array) {
  if (array.type != GgufType::f32) return {};
  std::vector<float> out(static_cast<std::size_t>(array.count));
  if (!out.empty()) std::memcpy(out.data(), array.bytes.data(), array.bytes.size());
  return out;
}

std::vector<std::int64_t> integers_of(const GgufArray& array) {
  switch (array.type) {
    case GgufType::u8: return widen<std::uint8_t>(array.bytes);
    case GgufType::i8: return widen<std::int8_t>(array.bytes);
    case GgufType::u16: return widen<std::uint16_t>(array.bytes);
    case GgufType::i16: return widen<std::int16_t>(array.bytes);
    case GgufType::u32: return widen<std::uint32_t>(array.bytes);
    case GgufType::i32: return widen<std::int32_t>(array.bytes);
    case GgufType::i64: return widen<std::int64_t>(array.bytes);
    default: return {};
  }
}

}  // namespace fixpoint::engine::detail
