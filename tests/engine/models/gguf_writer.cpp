#include "tests/engine/models/gguf_writer.h"

#include <cstring>

namespace fixpoint::test_models {
namespace {

void put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  const auto end = out.size();
  out.resize(end + bytes.size());
  if (!bytes.empty()) std::memcpy(out.data() + end, bytes.data(), bytes.size());
}

template <class T>
void put_value(std::vector<std::byte>& out, T value) {
  put(out, std::as_bytes(std::span(&value, 1)));
}

void put_string(std::vector<std::byte>& out, std::string_view text) {
  put_value(out, std::uint64_t{text.size()});
  put(out, std::as_bytes(std::span(text)));
}

template <class T>
std::vector<std::byte> array_of(std::uint32_t type, std::span<const T> values) {
  std::vector<std::byte> out;
  put_value(out, type);
  put_value(out, std::uint64_t{values.size()});
  put(out, std::as_bytes(values));
  return out;
}

void pad(std::vector<std::byte>& out, std::size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}

}  // namespace

void GgufWriter::raw(std::string_view key, std::uint32_t type, std::span<const std::byte> value) {
  put_string(pairs_, key);
  put_value(pairs_, type);
  put(pairs_, value);
  ++num_pairs_;
}

void GgufWriter::text(std::string_view key, std::string_view value) {
  std::vector<std::byte> bytes;
  put_string(bytes, value);
  raw(key, 8, bytes);
}

void GgufWriter::u32(std::string_view key, std::uint32_t value) { raw(key, 4, std::as_bytes(std::span(&value, 1))); }

void GgufWriter::f32(std::string_view key, float value) { raw(key, 6, std::as_bytes(std::span(&value, 1))); }

void GgufWriter::boolean(std::string_view key, bool value) {
  const auto byte = std::byte{value};
  raw(key, 7, std::span(&byte, 1));
}

void GgufWriter::strings(std::string_view key, std::span<const std::string> values) {
  std::vector<std::byte> bytes;
  put_value(bytes, std::uint32_t{8});
  put_value(bytes, std::uint64_t{values.size()});
  for (const auto& v : values) put_string(bytes, v);
  raw(key, 9, bytes);
}

void GgufWriter::floats(std::string_view key, std::span<const float> values) { raw(key, 9, array_of(6, values)); }

void GgufWriter::i32s(std::string_view key, std::span<const std::int32_t> values) { raw(key, 9, array_of(5, values)); }

void GgufWriter::entry(std::string_view name, std::uint32_t type, std::span<const std::uint64_t> dims, std::uint64_t offset) {
  put_string(directory_, name);
  put_value(directory_, static_cast<std::uint32_t>(dims.size()));
  put(directory_, std::as_bytes(dims));
  put_value(directory_, type);
  put_value(directory_, offset);
  ++num_tensors_;
}

void GgufWriter::tensor(std::string_view name, std::uint32_t type, std::span<const std::uint64_t> dims,
                        std::span<const std::byte> data) {
  pad(data_, alignment_);
  entry(name, type, dims, data_.size());
  put(data_, data);
}

std::vector<std::byte> GgufWriter::bytes() const {
  std::vector<std::byte> out;
  put(out, std::as_bytes(std::span("GGUF", 4)));
  put_value(out, version_);
  put_value(out, num_tensors_);
  put_value(out, num_pairs_);
  put(out, pairs_);
  put(out, directory_);
  pad(out, alignment_);
  put(out, data_);
  pad(out, alignment_);
  return out;
}

}  // namespace fixpoint::test_models
