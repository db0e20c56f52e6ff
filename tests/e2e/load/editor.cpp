#include "tests/e2e/load/editor.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <stdexcept>

namespace fixpoint::load {

namespace asio = boost::asio;
namespace beast = boost::beast;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

Editor::Editor(asio::io_context& context, std::uint16_t port) : context_(context), port_(port), socket_(context) {}

asio::awaitable<void> Editor::connect() {
  const asio::ip::tcp::endpoint there(asio::ip::address_v4::loopback(), port_);
  co_await socket_.next_layer().async_connect(there, asio::use_awaitable);
  socket_.next_layer().set_option(asio::ip::tcp::no_delay(true));
  const std::string host = "127.0.0.1:" + std::to_string(port_);
  co_await socket_.async_handshake(host, "/acp", asio::use_awaitable);
  socket_.text(true);
  Json params{{"protocolVersion", 1}, {"clientCapabilities", {{"fs", {{"readTextFile", false}, {"writeTextFile", false}}}}}};
  const Json hello = co_await call("initialize", std::move(params));
}

asio::awaitable<void> Editor::open() {
  co_await connect();
  Json params{{"cwd", "/work"}, {"mcpServers", Json::array()}};
  const Json made = co_await call("session/new", std::move(params));
  session_ = made["sessionId"];
  asio::co_spawn(context_, listen(), asio::detached);
}

asio::awaitable<void> Editor::open_and_stop_reading(std::string session) {
  socket_.next_layer().open(asio::ip::tcp::v4());
  socket_.next_layer().set_option(asio::socket_base::receive_buffer_size(4096));
  co_await connect();
  session_ = std::move(session);
  Json params{{"sessionId", session_}, {"cwd", "/work"}, {"mcpServers", Json::array()}, {"_meta", {{"fixpoint", {{"lastSeq", 0}}}}}};
  const Json resumed = co_await call("session/resume", std::move(params));
}

/// Only while nothing else reads.
asio::awaitable<Json> Editor::call(const char* method, Json params) {
  const int id = ++last_id_;
  const std::string text = Json({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}).dump();
  co_await socket_.async_write(asio::buffer(text), asio::use_awaitable);
  for (;;) {
    co_await socket_.async_read(buffer_, asio::use_awaitable);
    Json frame = Json::parse(beast::buffers_to_string(buffer_.data()));
    buffer_.consume(buffer_.size());
    if (!frame.contains("id") || frame["id"] != id) continue;
    if (frame.contains("error")) throw std::runtime_error(std::string(method) + ": " + frame["error"].dump());
    co_return frame["result"];
  }
}

asio::awaitable<void> Editor::listen() {
  for (;;) {
    const auto [error, size] = co_await socket_.async_read(buffer_, kTuple);
    if (error) {
      lost_ = true;
      co_return;
    }
    heard(Json::parse(beast::buffers_to_string(buffer_.data())));
    buffer_.consume(size);
  }
}

void Editor::heard(const Json& frame) {
  if (frame.contains("method")) {
    if (frame["method"] == "session/update") ++updates_;
    if (frame.contains("id")) send({{"jsonrpc", "2.0"}, {"id", frame["id"]}, {"error", {{"code", -32603}, {"message", "nobody is here"}}}});
    return;
  }
  if (!busy_ || frame["id"] != last_id_) return;
  answered_at_ = Clock::now();
  busy_ = false;
  stop_reason_ = frame.contains("result") ? frame["result"].value("stopReason", "") : frame.dump();
  if (again_) prompt();
}

void Editor::work(std::string task, bool again) {
  task_ = std::move(task);
  again_ = again;
  if (!busy_) prompt();
}

void Editor::prompt() {
  busy_ = true;
  prompted_at_ = Clock::now();
  send({{"jsonrpc", "2.0"},
        {"id", ++last_id_},
        {"method", "session/prompt"},
        {"params", {{"sessionId", session_}, {"prompt", Json::array({{{"type", "text"}, {"text", task_}}})}}}});
}

void Editor::cancel() {
  again_ = false;
  cancelled_at_ = Clock::now();
  send({{"jsonrpc", "2.0"}, {"method", "session/cancel"}, {"params", {{"sessionId", session_}}}});
}

void Editor::send(const Json& message) {
  waiting_.push_back(message.dump());
  if (!writing_) asio::co_spawn(context_, write(), asio::detached);
}

asio::awaitable<void> Editor::write() {
  if (writing_) co_return;
  writing_ = true;
  while (!waiting_.empty()) {
    const std::string text = std::move(waiting_.front());
    waiting_.pop_front();
    const auto [error, size] = co_await socket_.async_write(asio::buffer(text), kTuple);
    if (error) break;
  }
  writing_ = false;
}

}  // namespace fixpoint::load
