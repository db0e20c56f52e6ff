#include "tests/server/service.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "tests/engine/models/random_model.h"

namespace fixpoint::server {

Service::Service(engine::Speculation speculation) {
  const auto file = folder.path() / "tiny.gguf";
  test_models::write_random_model(file, {.context = 65'536});
  engine::LanguageModelOptions options{.path = file};
  options.cpu.num_threads = 1;
  options.engine.kv_memory_bytes = 24U << 20U;
  options.engine.speculation = speculation;
  auto loaded = engine::LanguageModel::load(options);
  if (!loaded) throw std::runtime_error(loaded.error().message());
  model = *std::move(loaded);
  journal = *agent::Journal::open(folder.path() / "journal.db");
  log_fd_ = ::open((folder.path() / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  log_ = std::make_unique<EventLog>(log_fd_);
  services.agent.journal = journal.get();
  services.model = model.get();
  services.model_id = "tiny";
  services.admission = &admission;
  services.metrics = &metrics;
  services.log = log_.get();
}

Service::~Service() {
  stop();
  ::close(log_fd_);
}

void Service::start(ServerOptions options) {
  if (options.listen == ServerOptions{}.listen) options.listen = {"127.0.0.1:0"};
  auto started = Server::start(std::move(options), services);
  if (!started) throw std::runtime_error(started.error());
  server_ = *std::move(started);
}

Reply Service::get(const std::string& path, const HttpClient::HeaderList& headers) const { return HttpClient(address()).request("GET", path, {}, headers); }

Reply Service::post(const std::string& path, const std::string& body, const HttpClient::HeaderList& headers) const {
  return HttpClient(address()).request("POST", path, body, headers);
}

bool Service::becomes_idle() {
  return eventually([this] {
    const engine::EngineStats stats = engine().stats();
    return stats.running == 0 && stats.waiting == 0 && stats.blocks_held == 0;
  });
}

bool Service::becomes_busy(int running) {
  return eventually([&] { return engine().stats().running >= running; });
}

std::string Service::log_text() const {
  std::ifstream in(folder.path() / "log");
  return {(std::istreambuf_iterator<char>(in)), {}};
}

std::string Service::add_token(const std::string& id, const std::string& tenant, bool use, bool review, bool operate, Limits limits) {
  const std::string secret = new_secret();
  TokenEntry entry{.sha256 = hash_secret(secret)};
  entry.principal = {.tenant = tenant, .token_id = id, .use = use, .review = review, .operate = operate, .limits = limits};
  if (const auto added = tokens_.add(std::move(entry)); !added) throw std::runtime_error(added.error());
  if (const auto written = write_tokens(token_file(), tokens_); !written) throw std::runtime_error(written.error());
  return secret;
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // between two looks, for the sake of the one looked at
  }
  return true;
}

void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key, const std::string& name) {
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), 0);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_set_pubkey(cert, pair);
  X509_NAME* subject = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(cert, subject);
  X509_sign(cert, pair, EVP_sha256());
  std::FILE* out = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(out, cert);
  std::fclose(out);
  out = std::fopen(key.c_str(), "w");
  PEM_write_PrivateKey(out, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(out);
  X509_free(cert);
  EVP_PKEY_free(pair);
}

}  // namespace fixpoint::server
