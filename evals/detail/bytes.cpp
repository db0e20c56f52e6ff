#include <openssl/evp.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <span>

#include "evals/detail/rows.h"

namespace fixpoint::evals::detail {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

/// `window_bits` as zlib has it: 15 for zlib, 31 for gzip.
tl::expected<std::string, std::string> inflate_bytes(std::string_view bytes, int window_bits) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) return tl::unexpected(std::string("is too large"));
  z_stream stream{};
  if (inflateInit2(&stream, window_bits) != Z_OK) return tl::unexpected(std::string("zlib does not start"));
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 1 << 16> buffer;
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) {
      return tl::unexpected("is not whole compressed data: " + std::string(stream.msg != nullptr ? stream.msg : "it ends early"));
    }
    out.append(buffer.data(), buffer.size() - stream.avail_out);
    if (out.size() > kMaxBytes) return tl::unexpected(std::string("is larger than 1 GiB uncompressed"));
    if (code != Z_STREAM_END) continue;
    if (stream.avail_in == 0) return out;
    // gzip files may be concatenated
    if (inflateReset(&stream) != Z_OK) return tl::unexpected(std::string("zlib does not start again"));
  }
}

}  // namespace

tl::expected<std::string, std::string> inflate_if_compressed(std::string_view bytes) {
  if (!bytes.starts_with("\x1f\x8b")) return std::string(bytes);
  return inflate_bytes(bytes, 31);
}

tl::expected<std::string, std::string> inflate_zlib(std::string_view bytes) { return inflate_bytes(bytes, 15); }

tl::expected<std::string, std::string> decode_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  bool padding = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      padding = true;
      continue;
    }
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0 || padding) return tl::unexpected(std::string("is not base64"));
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    if (count += 6; count >= 8) out += static_cast<char>((bits >> (count -= 8)) & 0xFF);
  }
  return out;
}

namespace {

std::string hex_of(std::span<const unsigned char> digest) {
  std::string out;
  for (const unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return hex_of({digest.data(), size});
}

tl::expected<std::string, DataError> read_file(const std::filesystem::path& file) {
  std::error_code code;
  if (std::filesystem::is_directory(file, code)) return tl::unexpected(DataError{file.string(), 0, "", "is a directory"});
  std::ifstream in(file, std::ios::binary);
  if (!in) return tl::unexpected(DataError{file.string(), 0, "", std::string("can't be read: ") + std::strerror(errno)});
  if (std::filesystem::file_size(file, code) > kMaxBytes && !code) return tl::unexpected(DataError{file.string(), 0, "", "is larger than 1 GiB"});
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace fixpoint::evals::detail

namespace fixpoint::evals {

std::string sha256_of_file(const std::filesystem::path& file) {
  std::error_code code;
  std::ifstream in(file, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(file, code)) return {};
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return {};
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(in.gcount()));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (in.bad() || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) return {};
  return detail::hex_of({digest.data(), size});
}

}  // namespace fixpoint::evals
