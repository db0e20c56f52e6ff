#include "server/any_stream.h"

namespace fixpoint::server {

namespace asio = boost::asio;
using boost::system::error_code;

static_assert(boost::beast::is_async_stream<AnyStream>::value);

void AnyStream::handshake(const std::optional<std::string>& host, HandshakeHandler handler) {
  error_code error;
  if (tls_ && host) {
    tls_->set_verify_callback(asio::ssl::host_name_verification(*host), error);
    if (SSL_set_tlsext_host_name(tls_->native_handle(), host->c_str()) != 1) error = asio::error::invalid_argument;
  }
  if (!tls_ || error) {
    asio::post(get_executor(), boost::beast::bind_front_handler(std::move(handler), error));
    return;
  }
  tls_->async_handshake(host ? asio::ssl::stream_base::client : asio::ssl::stream_base::server, std::move(handler));
}

void AnyStream::read_some(const Some<asio::mutable_buffer>& into, Handler handler) {
  if (tls_) {
    tls_->async_read_some(into, std::move(handler));
  } else {
    plain_->async_read_some(into, std::move(handler));
  }
}

void AnyStream::write_some(const Some<asio::const_buffer>& from, Handler handler) {
  if (tls_) {
    tls_->async_write_some(from, std::move(handler));
  } else {
    plain_->async_write_some(from, std::move(handler));
  }
}

}  // namespace fixpoint::server
