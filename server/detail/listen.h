#pragma once

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <variant>

namespace fixpoint::server::detail {

using TcpAcceptor = boost::asio::ip::tcp::acceptor;
using LocalAcceptor = boost::asio::local::stream_protocol::acceptor;

/// One bound address. Removes its socket's file when it dies.
struct Listening {
  std::variant<TcpAcceptor, LocalAcceptor> acceptor;
  std::string address;    ///< for people
  std::string file;       ///< of a Unix socket

  Listening(std::variant<TcpAcceptor, LocalAcceptor> bound, std::string name, std::string socket_file);
  Listening(Listening&&) noexcept = default;
  Listening& operator=(Listening&&) = delete;
  ~Listening();
  void close();
};

/// Where an address leads.
struct Place {
  std::string address;  ///< as it was given
  std::variant<boost::asio::ip::tcp::endpoint, boost::asio::local::stream_protocol::endpoint> endpoint;
  [[nodiscard]] bool loopback() const;  ///< only this machine can connect
};

/// Of HOST:PORT, [ADDRESS]:PORT or unix:PATH.
[[nodiscard]] tl::expected<Place, std::string> find_place(const std::string& address);
/// A socket's file that nobody listens on any more is replaced.
[[nodiscard]] tl::expected<Listening, std::string> bind(boost::asio::io_context& io, const Place& place, bool tls);

[[nodiscard]] tl::expected<std::shared_ptr<boost::asio::ssl::context>, std::string> load_tls(const std::string& certificate,
                                                                                             const std::string& key);

}  // namespace fixpoint::server::detail
