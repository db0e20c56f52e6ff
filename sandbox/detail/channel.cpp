#include "sandbox/detail/channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace fixpoint::sandbox::detail {

std::optional<SocketPair> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  if (descriptors.size() > kMaxDescriptors || bytes.size() > kMaxInline) {
    errno = EMSGSIZE;
    return false;
  }
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<Message> receive_message(int socket, bool wait) {
  Message message;
  std::array<std::byte, kMaxInline> buffer;  // left uninitialised: it is long, and the kernel fills it
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t received = -1;
  // A peer that closed before it had read all that we sent is told of once, ahead of what it sent before: that comes next.
  do {
    received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0) return std::nullopt;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
      message.descriptors.emplace_back(fd);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    errno = EMSGSIZE;
    return std::nullopt;
  }
  if (received == 0 && message.descriptors.empty()) {
    errno = 0;
    return std::nullopt;
  }
  message.bytes.assign(buffer.begin(), buffer.begin() + received);
  return message;
}

UniqueFd make_memory_file(const char* name, std::span<const std::byte> bytes, bool executable) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | (executable ? MFD_EXEC : MFD_NOEXEC_SEAL)));
  if (!file.valid() && errno == EINVAL) file.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return file;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return UniqueFd();
    done += static_cast<std::size_t>(written);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) return UniqueFd();
  return file;
}

bool send_frame(int socket, std::span<const std::byte> frame, std::span<const int> descriptors) {
  if (frame.size() <= kMaxInline && !frame.empty()) return send_message(socket, frame, descriptors);
  if (frame.size() > kMaxFrame || descriptors.size() + 1 > kMaxDescriptors) {
    errno = EMSGSIZE;
    return false;
  }
  const UniqueFd file = make_memory_file("fixpoint-frame", frame, false);
  if (!file.valid()) return false;
  std::vector<int> all{file.get()};
  all.insert(all.end(), descriptors.begin(), descriptors.end());
  return send_message(socket, {}, all);
}

bool unfold_frame(Message& message) {
  if (!message.bytes.empty()) return true;
  if (message.descriptors.empty()) return false;
  const UniqueFd file = std::move(message.descriptors.front());
  message.descriptors.erase(message.descriptors.begin());
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_size <= 0 || static_cast<std::size_t>(status.st_size) > kMaxFrame) return false;
  message.bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < message.bytes.size()) {
    const ssize_t got = ::pread(file.get(), message.bytes.data() + done, message.bytes.size() - done,
                                static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace fixpoint::sandbox::detail
