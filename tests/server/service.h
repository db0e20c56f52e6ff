#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "agent/journal.h"
#include "agent/loop.h"
#include "engine/language_model.h"
#include "server/admission.h"
#include "server/event_log.h"
#include "server/metrics.h"
#include "server/server.h"
#include "server/tokens.h"
#include "tests/engine/models/temporary_directory.h"
#include "tests/server/http_client.h"

namespace fixpoint::server {

/// Everything that a server needs, small: a model with random weights, a journal in a folder of its own, a log in a file.
class Service {
 public:
  explicit Service(engine::Speculation speculation = engine::Speculation::measured);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// On a free port of 127.0.0.1, unless `options` say where.
  void start(ServerOptions options = {});
  void stop() { server_.reset(); }

  [[nodiscard]] Server& server() { return *server_; }
  [[nodiscard]] const std::string& address(std::size_t i = 0) const { return server_->addresses()[i]; }
  [[nodiscard]] Reply get(const std::string& path, const HttpClient::HeaderList& headers = {}) const;
  [[nodiscard]] Reply post(const std::string& path, const std::string& body, const HttpClient::HeaderList& headers = {}) const;

  [[nodiscard]] engine::Engine& engine() { return model->engine(); }
  /// Whether the engine comes to rest: nothing runs or waits, and no block is held.
  [[nodiscard]] bool becomes_idle();
  [[nodiscard]] bool becomes_busy(int running = 1);
  [[nodiscard]] std::string log_text() const;

  /// A token of its own; adds it to the file that `token_file` names.
  std::string add_token(const std::string& id, const std::string& tenant, bool use, bool review, bool operate, Limits limits = {});
  [[nodiscard]] std::string token_file() const { return (folder.path() / "tokens.json").string(); }
  [[nodiscard]] static HttpClient::HeaderList with(const std::string& secret) { return {{"Authorization", "Bearer " + secret}}; }

  test_models::TemporaryDirectory folder;
  std::unique_ptr<engine::LanguageModel> model;
  std::unique_ptr<agent::Journal> journal;
  Admission admission{Admission::Options{}};
  Metrics metrics;
  Services services;

 private:
  std::unique_ptr<EventLog> log_;
  int log_fd_ = -1;
  TokenSet tokens_;
  std::unique_ptr<Server> server_;
};

/// Looks until it is true or half a minute is over.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// A request that would go on for minutes.
inline constexpr const char* kEndless = R"("ignore_eos":true,"temperature":0,"max_tokens":60000)";

/// A certificate for "localhost" signed by itself, and its key, as PEM files; `name` is its common name.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key, const std::string& name);

}  // namespace fixpoint::server
