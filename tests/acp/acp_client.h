#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/acp_peer.h"
#include "server/admission.h"
#include "server/event_log.h"
#include "server/metrics.h"
#include "server/session_hub.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::server {

using Json = nlohmann::json;

/// A service with a model and a checker from functions: FunctionGenerator writes what `answer` says, NumberChecker wants 7.
struct Service {
  agent::TestFolder folder;
  std::unique_ptr<agent::Journal> journal = *agent::Journal::open(folder.file("journal.db"));
  std::unique_ptr<SessionStore> store = *SessionStore::open(folder.file("conversations.db"));
  std::function<tl::expected<agent::Generation, agent::GenerateError>(const agent::GenerateRequest&, std::stop_token)> answer =
      [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(7), "Seven.")); };
  agent::FunctionGenerator model{[this](const agent::GenerateRequest& request, std::stop_token stop) { return answer(request, std::move(stop)); }};
  agent::FunctionGenerator specialist{
      [](const agent::GenerateRequest&, std::stop_token) { return agent::answer(agent::fenced(agent::program(7), "A specialist.")); }};
  agent::NumberChecker checker;
  Admission admission;
  Metrics metrics;
  EventLog log{-1};
  Services services;
  std::unique_ptr<SessionHub> hub;

  explicit Service(bool with_specialist = false) {
    services.agent = {.model = &model, .specialist = with_specialist ? &specialist : nullptr, .checker = &checker, .journal = journal.get()};
    services.loop.seed = 1;
    services.loop.ladder = {{.kind = agent::RungKind::person, .attempts = 1}};
    services.admission = &admission;
    services.metrics = &metrics;
    services.log = &log;
    hub = std::make_unique<SessionHub>(services, *store);
  }
  /// A new process on the same files.
  void restart() {
    hub.reset();
    hub = std::make_unique<SessionHub>(services, *store);
  }
};

/// What a client of the tests does with a request of the agent; nothing: it never answers.
using Responder = std::function<std::optional<Json>(const Json& request)>;

/// A client on an in-memory channel. All frames that came are kept, in order.
class Client {
  struct Waker {
    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;
    void wake() {
      const std::scoped_lock lock(mutex);
      woken = true;
      changed.notify_one();
    }
    bool wait(std::chrono::steady_clock::time_point deadline) {
      std::unique_lock lock(mutex);
      const bool came = changed.wait_until(lock, deadline, [this] { return woken; });
      woken = false;
      return came;
    }
  };
  std::shared_ptr<Waker> state_ = std::make_shared<Waker>();  // first: the outbox uses it

 public:
  explicit Client(Service& service, Principal who = local_principal(), Outbox::Options options = {})
      : outbox(std::make_shared<Outbox>([state = state_] { state->wake(); }, options)),
        peer(std::make_unique<AcpPeer>(*service.hub, std::move(who), outbox, AcpPeer::Options{.version = "1.0"})) {}

  /// Takes what waits; true if there was something.
  bool pump() {
    auto entry = outbox->take();
    if (!entry) return false;
    if (auto text = peer->render(*std::move(entry))) receive(*text);
    return true;
  }
  /// Until `done` says so, or a generous limit.
  template <class Done>
  void until(Done done, const char* what) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (pump()) continue;
      if (outbox->behind()) return;
      ASSERT_TRUE(state_->wait(deadline)) << "nothing came: " << what;
    }
  }
  void send(const Json& message) { peer->receive(message.dump()); }
  void notify(const std::string& method, const Json& params) { send({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}}); }
  int request(const std::string& method, const Json& params) {
    send({{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", params}});
    return last_id_;
  }
  Json response(int id) {
    until([&] { return responses.contains(id); }, "a response");
    return responses.contains(id) ? responses[id] : Json();
  }
  Json call(const std::string& method, const Json& params) { return response(request(method, params)); }

  Json initialize(bool reads = false, bool writes = false) {
    return call("initialize", {{"protocolVersion", 1}, {"clientCapabilities", {{"fs", {{"readTextFile", reads}, {"writeTextFile", writes}}}}}});
  }
  std::string new_session() {
    const Json reply = call("session/new", {{"cwd", "/work"}, {"mcpServers", Json::array()}});
    return reply["result"].value("sessionId", "");
  }
  static Json text_prompt(const std::string& session, const std::string& text, const Json& extras = Json::object()) {
    return {{"sessionId", session}, {"prompt", Json::array({{{"type", "text"}, {"text", text}}})}, {"_meta", {{"fixpoint", extras}}}};
  }
  /// The updates of a kind, among all that came.
  std::vector<Json> updates(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& frame : frames) {
      if (frame.value("method", "") == "session/update" && frame["params"]["update"]["sessionUpdate"] == kind) found.push_back(frame["params"]["update"]);
    }
    return found;
  }
  std::string text_of(const std::string& kind) const {
    std::string text;
    for (const Json& update : updates(kind)) text += update["content"].value("text", "");
    return text;
  }
  std::vector<std::int64_t> numbers() const {
    std::vector<std::int64_t> all;
    for (const Json& frame : frames) {
      if (!frame.contains("params") || !frame["params"].contains("_meta")) continue;
      all.push_back(frame["params"]["_meta"]["fixpoint"]["seq"]);
    }
    return all;
  }
  std::int64_t last_seq() const {
    const auto all = numbers();
    return all.empty() ? 0 : all.back();
  }

  std::shared_ptr<Outbox> outbox;
  std::unique_ptr<AcpPeer> peer;
  std::vector<Json> frames;
  std::map<int, Json> responses;
  std::vector<Json> requests;  ///< of the agent
  Responder respond = [](const Json&) { return std::nullopt; };

 private:
  void receive(const std::string& text) {
    Json frame = Json::parse(text);
    frames.push_back(frame);
    if (frame.contains("method") && frame.contains("id")) {
      requests.push_back(frame);
      if (auto result = respond(frame)) {
        Json reply{{"jsonrpc", "2.0"}, {"id", frame["id"]}};
        reply[result->contains("error") ? "error" : "result"] = result->contains("error") ? (*result)["error"] : *result;
        send(reply);
      }
    } else if (frame.contains("id") && frame["id"].is_number()) {
      responses[frame["id"]] = frame;
    }
  }

  int last_id_ = 0;
};

inline const std::string kTask = "Write `f(x)`. Give back seven.\n\n# Tests\n\nassert f(1) == 7\nassert f(2) == 7\n";

/// Chooses an option of a permission request.
inline Responder choose(std::string option) {
  return [option](const Json& request) -> std::optional<Json> {
    if (request["method"] != "session/request_permission") return std::nullopt;
    return Json{{"outcome", {{"outcome", "selected"}, {"optionId", option}}}};
  };
}

}  // namespace fixpoint::server
