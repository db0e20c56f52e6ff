#include "agent/openai_generator.h"

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "agent/detail/openai.h"

namespace fixpoint::agent {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using Kind = GenerateError::Kind;

class OpenAiGenerator final : public Generator {
 public:
  explicit OpenAiGenerator(std::unique_ptr<detail::OpenAiServer> server) : server_(std::move(server)) {}

  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text,
                                                   std::stop_token stop) override {
    const Clock::time_point deadline = Clock::now() + request.timeout;
    milliseconds backoff = server_->options().first_backoff;
    for (int tries = 0;; ++tries) {
      std::optional<std::chrono::seconds> retry_after;
      auto result = try_once(request, on_text, stop, deadline, retry_after);
      if (!result) server_->hide_key(result.error().detail);
      if (result || result.error().kind != Kind::unavailable || !result.error().partial.empty() || tries == server_->options().retries) {
        return result;
      }
      const milliseconds pause = retry_after ? milliseconds(*retry_after) : backoff;
      if (Clock::now() + pause >= deadline) return result;
      if (!wait(pause, stop)) return tl::unexpected(GenerateError{.kind = Kind::cancelled});
      backoff *= 2;
    }
  }

  std::string name() const override { return server_->name(); }

 private:
  tl::expected<Generation, GenerateError> try_once(const GenerateRequest& request, const OnText& on_text, const std::stop_token& stop,
                                                   Clock::time_point deadline, std::optional<std::chrono::seconds>& retry_after) {
    auto model = server_->model_name(stop, deadline);
    if (!model) return tl::unexpected(model.error());
    detail::HttpRequest http = server_->request_to("/chat/completions", deadline);
    http.body = body_of(request, *model);
    detail::AnswerReader reader({.max_tokens = request.max_tokens, .max_bytes = request.max_bytes}, on_text);
    const auto head = detail::exchange(
        http, [&reader](const detail::HttpHead& it, std::string_view piece) { return reader.take(it, piece); }, stop);
    if (!head) return tl::unexpected(reader.failure(detail::kind_of(head.error()), head.error().detail));
    if (head->status == 200) return reader.finish(*head);
    retry_after = head->retry_after;
    return tl::unexpected(detail::refusal(*head, reader.body()));
  }

  static std::string body_of(const GenerateRequest& request, const std::string& model) {
    const Json body{{"model", model},
                    {"messages", detail::messages_json(request.messages)},
                    {"max_tokens", request.max_tokens},
                    {"temperature", request.temperature},
                    {"top_p", request.top_p},
                    {"seed", request.seed},
                    {"stream", true},
                    {"stream_options", {{"include_usage", true}}}};
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static bool wait(milliseconds pause, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, pause, [] { return false; });
    return !stop.stop_requested();
  }

  std::unique_ptr<detail::OpenAiServer> server_;
};

}  // namespace

tl::expected<std::unique_ptr<Generator>, std::string> make_openai_generator(OpenAiOptions options) {
  auto server = detail::OpenAiServer::open(std::move(options));
  if (!server) return tl::unexpected(server.error());
  return std::make_unique<OpenAiGenerator>(*std::move(server));
}

}  // namespace fixpoint::agent
