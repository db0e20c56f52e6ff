#include "server/detail/listen.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <optional>

namespace fixpoint::server::detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Local = asio::local::stream_protocol;

std::string refusal(const std::string& address, const error_code& error) { return "cannot listen on '" + address + "': " + error.message(); }

tl::expected<Listening, std::string> bind_local(asio::io_context& io, const std::string& address, const Local::endpoint& endpoint) {
  const std::string path = endpoint.path();
  error_code error;
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    Local::socket probe(io);
    probe.connect(endpoint, error);
    if (!error) return tl::unexpected("cannot listen on '" + address + "': another server does");
    ::unlink(path.c_str());
    error = {};
  }
  LocalAcceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) ::chmod(path.c_str(), 0660);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return tl::unexpected(refusal(address, error));
  return Listening(std::move(acceptor), "unix:" + path, path);
}

tl::expected<Listening, std::string> bind_tcp(asio::io_context& io, const std::string& address, const tcp::endpoint& endpoint, bool tls) {
  error_code error;
  TcpAcceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return tl::unexpected(refusal(address, error));
  const tcp::endpoint bound = acceptor.local_endpoint(error);
  const std::string text = bound.address().is_v6() ? "[" + bound.address().to_string() + "]" : bound.address().to_string();
  return Listening(std::move(acceptor), (tls ? "https://" : "http://") + text + ":" + std::to_string(bound.port()), "");
}

/// Decimal digits, nothing else; the resolver would take 65536 for 0.
std::optional<std::uint16_t> port_number(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, port);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(port) : std::nullopt;
}

}  // namespace

Listening::Listening(std::variant<TcpAcceptor, LocalAcceptor> bound, std::string name, std::string socket_file)
    : acceptor(std::move(bound)), address(std::move(name)), file(std::move(socket_file)) {}

Listening::~Listening() { close(); }

void Listening::close() {
  error_code ignored;
  std::visit([&](auto& it) { it.close(ignored); }, acceptor);
  if (!file.empty()) ::unlink(file.c_str());
  file.clear();
}

bool Place::loopback() const {
  const auto* const tcp_endpoint = std::get_if<tcp::endpoint>(&endpoint);
  return tcp_endpoint == nullptr || tcp_endpoint->address().is_loopback();
}

tl::expected<Place, std::string> find_place(const std::string& address) {
  if (address.starts_with("unix:")) {
    const std::string path = address.substr(5);
    if (path.empty() || path.size() > 100) return tl::unexpected("--listen: '" + address + "': a socket's path has 1 to 100 bytes");
    return Place{address, Local::endpoint(path)};
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return tl::unexpected("--listen: '" + address + "' is none of HOST:PORT, [ADDRESS]:PORT and unix:PATH");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto port = port_number(std::string_view(address).substr(colon + 1));
  if (!port) return tl::unexpected("--listen: '" + address + "': a port is a number from 0 to 65535");
  asio::io_context io;
  tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(host, std::to_string(*port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) return tl::unexpected(refusal(address, error));
  return Place{address, found.begin()->endpoint()};
}

tl::expected<Listening, std::string> bind(asio::io_context& io, const Place& place, bool tls) {
  if (const auto* const local = std::get_if<Local::endpoint>(&place.endpoint)) return bind_local(io, place.address, *local);
  return bind_tcp(io, place.address, std::get<tcp::endpoint>(place.endpoint), tls);
}

tl::expected<std::shared_ptr<asio::ssl::context>, std::string> load_tls(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 |
                           asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  context->use_certificate_chain_file(certificate, error);
  if (error) return tl::unexpected("--tls-cert: cannot use '" + certificate + "': " + error.message());
  context->use_private_key_file(key, asio::ssl::context::pem, error);
  if (error) return tl::unexpected("--tls-key: cannot use '" + key + "': " + error.message());
  return context;
}

}  // namespace fixpoint::server::detail
