#include "agent/openai_stream.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "agent/detail/openai.h"

namespace fixpoint::agent {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

class Stream final : public OpenAiStream {
 public:
  explicit Stream(std::unique_ptr<detail::OpenAiServer> server) : server_(std::move(server)) {}

  tl::expected<StreamedAnswer, GenerateError> ask(const StreamRequest& request, std::stop_token stop) override {
    const Clock::time_point deadline = Clock::now() + request.timeout;
    const bool predicts = !request.prediction.empty() && !refuses_prediction_;
    auto answer = try_once(request, predicts, stop, deadline);
    if (!answer && answer.error().kind == GenerateError::Kind::refused && predicts) {
      auto without = try_once(request, false, stop, deadline);
      if (without) refuses_prediction_ = true;
      answer = std::move(without);
    }
    if (!answer) server_->hide_key(answer.error().detail);
    return answer;
  }

  bool refuses_prediction() const override { return refuses_prediction_; }
  std::string name() const override { return server_->name(); }

 private:
  tl::expected<StreamedAnswer, GenerateError> try_once(const StreamRequest& request, bool predicts, const std::stop_token& stop,
                                                       Clock::time_point deadline) {
    auto model = server_->model_name(stop, deadline);
    if (!model) return tl::unexpected(model.error());
    const bool chat = std::holds_alternative<std::vector<Message>>(request.prompt);
    detail::HttpRequest http = server_->request_to(chat ? "/chat/completions" : "/completions", deadline);
    http.body = body_of(request, predicts, *model);
    StreamedAnswer answer;
    const OnText no_text;
    const auto tokens = static_cast<std::size_t>(request.tokens);
    detail::AnswerReader reader({.max_tokens = request.tokens, .max_bytes = 65'536 + 64 * tokens}, no_text,
                                [&answer] { answer.arrivals.push_back(Clock::now()); });
    const auto head = detail::exchange(
        http, [&reader](const detail::HttpHead& it, std::string_view piece) { return reader.take(it, piece); }, stop);
    if (!head) return tl::unexpected(reader.failure(detail::kind_of(head.error()), head.error().detail));
    if (head->status != 200) return tl::unexpected(detail::refusal(*head, reader.body()));
    auto generation = reader.finish(*head);
    if (!generation) return tl::unexpected(generation.error());
    answer.generation = *std::move(generation);
    return answer;
  }

  static std::string body_of(const StreamRequest& request, bool predicts, const std::string& model) {
    Json body{{"model", model},
              {"max_tokens", request.tokens},
              {"ignore_eos", true},  // not OpenAI's: llama.cpp, vLLM and Fixpoint have it
              {"temperature", 0},
              {"seed", 1},
              {"stream", true},
              {"stream_options", {{"include_usage", true}}}};
    if (const auto* text = std::get_if<std::string>(&request.prompt)) {
      body["prompt"] = *text;
    } else {
      body["messages"] = detail::messages_json(std::get<std::vector<Message>>(request.prompt));
    }
    if (predicts) body["prediction"] = {{"type", "content"}, {"content", request.prediction}};
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  std::unique_ptr<detail::OpenAiServer> server_;
  std::atomic<bool> refuses_prediction_ = false;
};

}  // namespace

tl::expected<std::unique_ptr<OpenAiStream>, std::string> make_openai_stream(OpenAiOptions options) {
  auto server = detail::OpenAiServer::open(std::move(options));
  if (!server) return tl::unexpected(server.error());
  return std::make_unique<Stream>(*std::move(server));
}

}  // namespace fixpoint::agent
