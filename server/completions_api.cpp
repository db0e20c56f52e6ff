#include <nlohmann/json.hpp>

#include "engine/language_model.h"
#include "server/api.h"
#include "server/detail/json_response.h"
#include "server/event_log.h"

namespace fixpoint::server::handlers {
namespace {

using nlohmann::json;

Answer begin(const tl::expected<CompletionCall, ApiError>& call, const HttpRequest& request, const Services& services, std::function<void()> wake) {
  if (!call) return call.error().response();
  auto started = Completion::start(*call, services, request, std::move(wake));
  if (!started) return started.error().response();
  return *std::move(started);
}

json model_json(const Services& services) {
  json out{{"id", services.model_id}, {"object", "model"}, {"created", 0}, {"owned_by", "fixpoint"}};
  if (services.model != nullptr) {
    out["max_model_len"] = services.model->engine().max_sequence_tokens();
    out["description"] = services.model->description();
  }
  return out;
}

const ApiError kNoModel{.status = 501, .message = "this server's model runs elsewhere; it has no tokenizer here"};

}  // namespace

Answer chat_completions(const HttpRequest& request, const Services& services, std::function<void()> wake) {
  return begin(parse_chat_call(request.body), request, services, std::move(wake));
}

Answer completions(const HttpRequest& request, const Services& services, std::function<void()> wake) {
  return begin(parse_completion_call(request.body), request, services, std::move(wake));
}

Answer models(const HttpRequest&, const Services& services, std::function<void()>) {
  return json_response({{"object", "list"}, {"data", json::array({model_json(services)})}});
}

Answer model(const HttpRequest& request, const Services& services, std::function<void()>) {
  if (request.parameters[0] != services.model_id) {
    return ApiError{.status = 404, .message = "the model '" + request.parameters[0] + "' does not exist here", .param = "model", .code = "model_not_found"}.response();
  }
  return json_response(model_json(services));
}

Answer tokenize(const HttpRequest& request, const Services& services, std::function<void()>) {
  if (services.model == nullptr) return kNoModel.response();
  const auto call = parse_tokenize_call(request.body);
  if (!call) return call.error().response();
  const engine::LanguageModel& model = *services.model;
  std::vector<engine::TokenId> tokens;
  if (const auto* text = std::get_if<std::string>(&call->text)) {
    constexpr auto kAsText = engine::Tokenizer::ControlTokens::as_text;
    tokens = call->add_special_tokens ? model.plain_prompt(*text, kAsText) : model.tokenizer().encode(*text, kAsText);
  } else {
    auto rendered = model.chat_prompt(std::get<std::vector<engine::Message>>(call->text));
    if (!rendered) return ApiError{.message = "messages: " + rendered.error(), .param = "messages"}.response();
    tokens = *std::move(rendered);
  }
  return json_response({{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", services.model->engine().max_sequence_tokens()}});
}

Answer detokenize(const HttpRequest& request, const Services& services, std::function<void()>) {
  if (services.model == nullptr) return kNoModel.response();
  const auto tokens = parse_detokenize_call(request.body);
  if (!tokens) return tokens.error().response();
  const auto& tokenizer = services.model->tokenizer();
  for (const engine::TokenId token : *tokens) {
    if (token >= tokenizer.size()) {
      return ApiError{.message = "tokens: " + std::to_string(token) + " is no token of this model", .param = "tokens"}.response();
    }
  }
  return json_response({{"prompt", tokenizer.decode(*tokens, true)}});
}

}  // namespace fixpoint::server::handlers
