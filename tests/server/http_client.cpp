#include "tests/server/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fixpoint::server {

struct HttpClient::Tls {
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
};

std::string Reply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

HttpClient::HttpClient(const std::string& address) {
  if (address.starts_with("unix:")) {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un to{.sun_family = AF_UNIX};
    std::strncpy(to.sun_path, address.c_str() + 5, sizeof(to.sun_path) - 1);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
      ::close(fd_);
      fd_ = -1;
    }
    return;
  }
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))))};
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (!address.starts_with("https:")) return;
  tls_ = new Tls;
  tls_->context = SSL_CTX_new(TLS_client_method());
  tls_->ssl = SSL_new(tls_->context);
  SSL_set_fd(tls_->ssl, fd_);
  if (SSL_connect(tls_->ssl) != 1) {
    ::close(fd_);
    fd_ = -1;
  }
}

HttpClient::~HttpClient() {
  if (tls_ != nullptr) {
    SSL_free(tls_->ssl);
    SSL_CTX_free(tls_->context);
    delete tls_;
  }
  if (fd_ >= 0) ::close(fd_);
}

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty() && fd_ >= 0) {
    const auto size = tls_ != nullptr ? SSL_write(tls_->ssl, bytes.data(), static_cast<int>(bytes.size()))
                                      : static_cast<int>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (size <= 0) return;  // closed: read() will tell
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

bool HttpClient::fill() {
  char buffer[16 * 1024];
  if (fd_ < 0) return false;
  const auto size = tls_ != nullptr ? SSL_read(tls_->ssl, buffer, sizeof(buffer)) : static_cast<int>(::recv(fd_, buffer, sizeof(buffer), 0));
  if (size <= 0) return false;
  pending_.append(buffer, static_cast<std::size_t>(size));
  return true;
}

std::string HttpClient::take(std::size_t bytes) {
  while (pending_.size() < bytes && fill()) {
  }
  bytes = std::min(bytes, pending_.size());
  std::string out = pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  return out;
}

std::string HttpClient::line() {
  std::size_t end = 0;
  while ((end = pending_.find("\r\n")) == std::string::npos) {
    if (!fill()) return take(pending_.size());
  }
  std::string out = take(end);
  (void)take(2);
  return out;
}

Reply HttpClient::read(bool no_body) {
  Reply reply;
  const std::string first = line();
  if (!first.starts_with("HTTP/1.1 ") || first.size() < 12) return reply;
  reply.status = std::stoi(first.substr(9, 3));
  for (std::string it = line(); !it.empty(); it = line()) {
    const std::size_t colon = it.find(':');
    if (colon == std::string::npos) return {};
    std::string name = it.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[name] = it.substr(std::min(it.size(), colon + 2));
  }
  if (reply.status == 100) return read(no_body);
  if (no_body || reply.status == 204) return reply;
  if (reply.header("transfer-encoding") == "chunked") {
    while (true) {
      const std::size_t size = std::stoul("0" + line(), nullptr, 16);
      reply.body += take(size);
      const std::string end = line();
      if (size == 0 || !end.empty()) return reply;
    }
  }
  if (const std::string length = reply.header("content-length"); !length.empty()) {
    reply.body = take(std::stoul(length));
  } else {
    while (fill()) {
    }
    reply.body = take(pending_.size());
  }
  return reply;
}

std::string HttpClient::read_until(std::string_view text) {
  while (pending_.find(text) == std::string::npos) {
    if (!fill()) return {};
  }
  return take(pending_.find(text) + text.size());
}

bool HttpClient::closed() {
  while (fill()) pending_.clear();
  pollfd waiting{.fd = fd_, .events = POLLIN};
  return fd_ < 0 || ::poll(&waiting, 1, 0) == 1;  // ended, not timed out
}

void HttpClient::half_close() { ::shutdown(fd_, SHUT_WR); }

std::string HttpClient::message(const std::string& method, const std::string& path, const std::string& body, const HeaderList& headers) {
  std::string out = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
  if (!body.empty() || method == "POST") out += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return out + "\r\n" + body;
}

Reply HttpClient::request(const std::string& method, const std::string& path, const std::string& body, const HeaderList& headers) {
  send(message(method, path, body, headers));
  return read(method == "HEAD");
}

std::string HttpClient::peer_name() const {
  char name[256] = "";
  X509* certificate = tls_ != nullptr ? SSL_get1_peer_certificate(tls_->ssl) : nullptr;
  if (certificate == nullptr) return {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  X509_free(certificate);
  return name;
}

std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> out;
  for (std::size_t at = 0, end = 0; (end = body.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string event = body.substr(at, end - at);
    if (event.starts_with("data: ")) out.push_back(event.substr(6));
  }
  return out;
}

}  // namespace fixpoint::server
