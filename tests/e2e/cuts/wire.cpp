#include "tests/e2e/cuts/wire.h"

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace fixpoint::cuts {

namespace asio = boost::asio;
namespace beast = boost::beast;

struct Wire::Impl {
  asio::io_context context;
  beast::websocket::stream<asio::ip::tcp::socket> socket{context};
  beast::flat_buffer buffer;
  std::atomic<bool> cut{false};
  int last_id = 0;
  std::jthread knife;  // last: it uses the socket

  void cut_after(std::chrono::microseconds life, int fd) {
    knife = std::jthread([this, life, fd](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any wake;
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, life, [] { return false; });
      if (stop.stop_requested()) return;
      cut = true;
      ::shutdown(fd, SHUT_RDWR);
    });
  }
  void write(const Json& message) { socket.write(asio::buffer(message.dump())); }
};

Wire::Wire(std::uint16_t port, std::chrono::microseconds life, bool reset) : impl_(std::make_unique<Impl>()) {
  try {
    auto& tcp = impl_->socket.next_layer();
    tcp.connect({asio::ip::address_v4::loopback(), port});
    tcp.set_option(asio::ip::tcp::no_delay(true));
    if (reset) tcp.set_option(asio::socket_base::linger(true, 0));
    impl_->cut_after(life, tcp.native_handle());
    impl_->socket.handshake("127.0.0.1:" + std::to_string(port), "/acp");
    impl_->socket.text(true);
  } catch (const boost::system::system_error&) {
    throw Broken{};
  }
}

Wire::~Wire() {
  impl_->knife.request_stop();
  if (impl_->knife.joinable()) impl_->knife.join();
}

bool Wire::cut() const { return impl_->cut; }

Json Wire::call(const std::string& method, const Json& params, const std::function<void(const Json&)>& on_update) {
  const int id = ++impl_->last_id;
  try {
    impl_->write({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
    for (;;) {
      impl_->socket.read(impl_->buffer);
      const Json frame = Json::parse(beast::buffers_to_string(impl_->buffer.data()));
      impl_->buffer.clear();
      if (frame.contains("method")) {
        if (frame["method"] == "session/update") {
          on_update(frame["params"]);
        } else if (frame.contains("id")) {
          impl_->write({{"jsonrpc", "2.0"}, {"id", frame["id"]}, {"error", {{"code", -32603}, {"message", "nobody is here"}}}});
        }
      } else if (frame["id"] == id) {
        if (frame.contains("error")) throw std::runtime_error(method + ": " + frame["error"].dump());
        return frame["result"];
      }
    }
  } catch (const boost::system::system_error&) {
    throw Broken{};
  }
}

}  // namespace fixpoint::cuts
