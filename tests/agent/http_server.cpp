#include "tests/agent/http_server.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <nlohmann/json.hpp>
#include <thread>

namespace fixpoint::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

struct Identity {
  std::string certificate, key;
};

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

/// A fresh self-signed certificate for "localhost".
Identity make_identity() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_version(certificate, 2);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate, key, EVP_sha256());
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, certificate);
  Identity identity{.certificate = text_of(out)};
  BIO_free(out);
  out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  identity.key = text_of(out);
  BIO_free(out);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

SeenRequest parse_head(const std::string& head) {
  SeenRequest request;
  std::size_t at = head.find("\r\n");
  const std::string first = head.substr(0, at);
  request.method = first.substr(0, first.find(' '));
  request.target = first.substr(request.method.size() + 1, first.rfind(' ') - request.method.size() - 1);
  while (at + 2 < head.size()) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) request.headers.emplace_back(lower(line.substr(0, colon)), line.substr(colon + 2));
    at = end;
  }
  return request;
}

}  // namespace

std::string SeenRequest::header(const std::string& name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string http_head(int status, const std::string& content_type, const std::string& more) {
  return "HTTP/1.1 " + std::to_string(status) + " Status\r\nContent-Type: " + content_type + "\r\nConnection: close\r\n" + more + "\r\n";
}

ServerAnswer whole_answer(int status, const std::string& content_type, const std::string& body, const std::string& more) {
  return {.pieces = {http_head(status, content_type, more + "Content-Length: " + std::to_string(body.size()) + "\r\n"), body}};
}

ServerAnswer streamed_answer(const std::vector<std::string>& deltas, const std::string& finish) {
  ServerAnswer answer{.pieces = {http_head(200, "text/event-stream")}};
  const auto event = [&answer](const nlohmann::json& json) { answer.pieces.push_back("data: " + json.dump() + "\n\n"); };
  for (const std::string& delta : deltas) event({{"choices", {{{"index", 0}, {"delta", {{"content", delta}}}}}}});
  event({{"choices", {{{"index", 0}, {"delta", nlohmann::json::object()}, {"finish_reason", finish}}}}});
  event({{"choices", nlohmann::json::array()},
         {"usage", {{"prompt_tokens", 50}, {"completion_tokens", 7}, {"prompt_tokens_details", {{"cached_tokens", 48}}}}}});
  answer.pieces.push_back("data: [DONE]\n\n");
  return answer;
}

struct HttpServer::Impl {
  Impl(Respond function, bool with_tls) : respond(std::move(function)), acceptor(io, {asio::ip::make_address("127.0.0.1"), 0}), tls(with_tls) {
    if (tls) {
      identity = make_identity();
      context.use_certificate(asio::buffer(identity.certificate), asio::ssl::context::pem);
      context.use_private_key(asio::buffer(identity.key), asio::ssl::context::pem);
    }
    port = acceptor.local_endpoint().port();
    thread = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~Impl() {
    thread.request_stop();
    // A connection of our own wakes accept().
    asio::io_context own;
    tcp::socket wake(own);
    boost::system::error_code ignored;
    wake.connect({asio::ip::make_address("127.0.0.1"), port}, ignored);
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      boost::system::error_code error;
      tcp::socket socket(io);
      acceptor.accept(socket, error);
      if (error || stop.stop_requested()) continue;
      if (!tls) {
        talk(socket);
        continue;
      }
      asio::ssl::stream<tcp::socket> stream(std::move(socket), context);
      stream.handshake(asio::ssl::stream_base::server, error);
      if (!error) talk(stream);
    }
  }

  template <class Stream>
  void talk(Stream& stream) {
    boost::system::error_code error;
    std::string bytes;
    const std::size_t head = asio::read_until(stream, asio::dynamic_buffer(bytes), "\r\n\r\n", error);
    if (error) return;
    SeenRequest request = parse_head(bytes.substr(0, head));
    const std::string length = request.header("content-length");
    const std::size_t want = length.empty() ? 0 : std::stoul(length);
    request.body = bytes.substr(head);
    while (request.body.size() < want) {
      std::string more(want - request.body.size(), '\0');
      const std::size_t got = stream.read_some(asio::buffer(more), error);
      if (error) return;
      request.body += more.substr(0, got);
    }
    {
      const std::scoped_lock lock(mutex);
      seen.push_back(request);
    }
    const ServerAnswer answer = respond(request);
    for (const std::string& piece : answer.pieces) {
      asio::write(stream, asio::buffer(piece), error);
      if (error) break;
    }
    if (answer.hold) {
      char byte = 0;
      while (!error) stream.read_some(asio::buffer(&byte, 1), error);
      ++closed;
    }
  }

  Respond respond;
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::ssl::context context{asio::ssl::context::tls_server};
  bool tls;
  Identity identity;
  std::uint16_t port = 0;
  mutable std::mutex mutex;
  std::vector<SeenRequest> seen;
  std::atomic<int> closed{0};
  std::jthread thread;
};

HttpServer::HttpServer(Respond respond, bool tls) : impl_(std::make_unique<Impl>(std::move(respond), tls)) {}
HttpServer::~HttpServer() = default;

std::string HttpServer::url(const std::string& path) const {
  return (impl_->tls ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(impl_->port) + path;
}
std::vector<SeenRequest> HttpServer::seen() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->seen;
}
const std::string& HttpServer::certificate() const { return impl_->identity.certificate; }
int HttpServer::closed_by_client() const { return impl_->closed; }

}  // namespace fixpoint::agent
