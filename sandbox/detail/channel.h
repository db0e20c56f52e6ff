#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// Most descriptors that one message carries.
inline constexpr std::size_t kMaxDescriptors = 12;
/// Longest message; anything longer travels in a sealed memory file (see send_frame).
inline constexpr std::size_t kMaxInline = 96 * 1024;
/// Longest frame altogether: sources and input files of one job.
inline constexpr std::size_t kMaxFrame = 64UL << 20;

struct Message {
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> descriptors;
};

struct SocketPair {
  UniqueFd first;
  UniqueFd second;
};

/// Two connected SOCK_SEQPACKET sockets, close-on-exec. Empty on failure (errno).
[[nodiscard]] std::optional<SocketPair> make_socket_pair();

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

/// Close-on-exec. Empty on failure (errno).
[[nodiscard]] std::optional<Pipe> make_pipe();

/// Sends one message whole; false with errno when the peer is gone or the socket is full and non-blocking.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors);

/// Receives one message. Empty with errno 0 at end of file, with errno otherwise.
[[nodiscard]] std::optional<Message> receive_message(int socket, bool wait);

/// Like send_message, but a long frame goes through a memory file, sent as an additional first descriptor behind an empty
/// inline part.
[[nodiscard]] bool send_frame(int socket, std::span<const std::byte> frame, std::span<const int> descriptors);

/// The other end of send_frame: replaces an empty inline part by the memory file's content. False when it is malformed.
[[nodiscard]] bool unfold_frame(Message& message);

/// A sealed memory file holding `bytes`.
[[nodiscard]] UniqueFd make_memory_file(const char* name, std::span<const std::byte> bytes, bool executable);

}  // namespace fixpoint::sandbox::detail
