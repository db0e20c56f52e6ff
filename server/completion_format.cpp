#include "server/completion_format.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "server/event_log.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

std::string logprob_text(float value) {
  // JSON has no -inf; OpenAI's lowest value stands for it.
  return json(std::isfinite(value) ? static_cast<double>(value) : -9999.0).dump();
}

std::string bytes_text(std::string_view bytes) {
  std::string out = "[";
  for (const char c : bytes) out += (out.size() > 1 ? "," : "") + std::to_string(static_cast<unsigned char>(c));
  return out + "]";
}

/// ,"finish_reason":…,"stop_reason":…
std::string finish_text(const engine::Finish* finish) {
  if (finish == nullptr) return R"(,"finish_reason":null)";
  std::string stop = "null";
  if (const auto* text = std::get_if<std::string>(&finish->stop)) stop = json_string(*text);
  if (const auto* token = std::get_if<engine::TokenId>(&finish->stop)) stop = std::to_string(*token);
  return R"(,"finish_reason":)" + json_string(engine::to_string(finish->reason)) + R"(,"stop_reason":)" + stop;
}

std::string sse(const std::string& data) { return "data: " + data + "\n\n"; }

}  // namespace

CompletionFormat::CompletionFormat(bool chat, Names names, bool include_usage, const engine::Tokenizer& tokenizer,
                                   std::vector<std::string> echoes, int n)
    : chat_(chat), names_(std::move(names)), include_usage_(include_usage), tokenizer_(&tokenizer), echoes_(std::move(echoes)), n_(n) {}

CompletionFormat::Choice& CompletionFormat::choice(int index) {
  const auto i = static_cast<std::size_t>(index);
  if (choices_.size() <= i) choices_.resize(i + 1);
  return choices_[i];
}

void CompletionFormat::count(int index, const engine::Output& output) {
  if (!output.finish) return;
  const engine::Usage& usage = output.finish->usage;
  if (index % n_ == 0) {  // the samples of a prompt share it
    totals_.prompt_tokens += usage.prompt_tokens;
    totals_.cached_tokens += usage.cached_tokens;
  }
  totals_.completion_tokens += usage.completion_tokens;
  totals_.accepted_prediction_tokens += usage.accepted_prediction_tokens;
  totals_.rejected_prediction_tokens += usage.rejected_prediction_tokens;
}

std::string CompletionFormat::token_json(const engine::TokenLogprob& token) const {
  const std::string_view bytes = tokenizer_->token_bytes(token.token);
  return R"({"token":)" + json_string(bytes) + R"(,"logprob":)" + logprob_text(token.logprob) + R"(,"bytes":)" + bytes_text(bytes);
}

std::string CompletionFormat::logprobs(const std::vector<engine::TokenLogprobs>& tokens, std::size_t text_offset) const {
  if (tokens.empty()) return "null";
  if (chat_) {
    std::string out;
    for (const engine::TokenLogprobs& it : tokens) {
      std::string top;
      for (const engine::TokenLogprob& other : it.top) top += (top.empty() ? "" : ",") + token_json(other) + "}";
      out += (out.empty() ? "" : ",") + token_json(it.chosen) + R"(,"top_logprobs":[)" + top + "]}";
    }
    return R"({"content":[)" + out + R"(],"refusal":null})";
  }
  json names = json::array(), values = json::array(), tops = json::array(), offsets = json::array();
  for (const engine::TokenLogprobs& it : tokens) {
    names.push_back(tokenizer_->token_bytes(it.chosen.token));
    values.push_back(std::isfinite(it.chosen.logprob) ? static_cast<double>(it.chosen.logprob) : -9999.0);
    json top = json::object();
    for (const engine::TokenLogprob& other : it.top) top[std::string(tokenizer_->token_bytes(other.token))] = other.logprob;
    tops.push_back(std::move(top));
    offsets.push_back(text_offset);
    text_offset += tokenizer_->token_bytes(it.chosen.token).size();
  }
  const json whole{{"tokens", names}, {"token_logprobs", values}, {"top_logprobs", tops}, {"text_offset", offsets}};
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string CompletionFormat::head(std::string_view object) const {
  return R"({"id":)" + json_string(names_.id) + R"(,"object":")" + std::string(object) + R"(","created":)" + std::to_string(names_.created) +
         R"(,"model":)" + json_string(names_.model);
}

std::string CompletionFormat::usage() const {
  return R"({"prompt_tokens":)" + std::to_string(totals_.prompt_tokens) + R"(,"completion_tokens":)" + std::to_string(totals_.completion_tokens) +
         R"(,"total_tokens":)" + std::to_string(totals_.prompt_tokens + totals_.completion_tokens) +
         R"(,"prompt_tokens_details":{"cached_tokens":)" + std::to_string(totals_.cached_tokens) +
         R"(},"completion_tokens_details":{"accepted_prediction_tokens":)" + std::to_string(totals_.accepted_prediction_tokens) +
         R"(,"rejected_prediction_tokens":)" + std::to_string(totals_.rejected_prediction_tokens) + "}}";
}

std::string CompletionFormat::event(const std::string& choices, bool with_usage) const {
  std::string out = head(chat_ ? "chat.completion.chunk" : "text_completion") + R"(,"choices":[)" + choices + "]";
  if (include_usage_) out += R"(,"usage":)" + (with_usage ? usage() : std::string("null"));
  return sse(out + "}");
}

std::string CompletionFormat::events(int index, const engine::Output& output) {
  Choice& it = choice(index);
  count(index, output);
  std::string out;
  const std::string number = R"({"index":)" + std::to_string(index);
  std::string text = output.text;
  if (!it.begun) {
    it.begun = true;
    if (chat_) {
      out += event(number + R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})", false);
    } else if (!echoes_.empty()) {
      text.insert(0, echoes_[static_cast<std::size_t>(index / n_)]);
    }
  }
  const std::string details = R"(,"logprobs":)" + logprobs(output.logprobs, it.text_bytes);
  it.text_bytes += text.size();
  if (chat_) {
    // The text first, then the reason in a chunk of its own with an empty delta.
    if (!text.empty() || !output.logprobs.empty()) out += event(number + R"(,"delta":{"content":)" + json_string(text) + "}" + details + finish_text(nullptr) + "}", false);
    if (output.finish) out += event(number + R"(,"delta":{},"logprobs":null)" + finish_text(&*output.finish) + "}", false);
  } else if (!text.empty() || !output.logprobs.empty() || output.finish) {
    out += event(number + R"(,"text":)" + json_string(text) + details + finish_text(output.finish ? &*output.finish : nullptr) + "}", false);
  }
  return out;
}

std::string CompletionFormat::last_events() const { return (include_usage_ ? event("", true) : std::string()) + sse("[DONE]"); }

std::string CompletionFormat::error_event(const ApiError& error) { return sse(error.body()); }

void CompletionFormat::keep(int index, engine::Output output) {
  Choice& it = choice(index);
  count(index, output);
  if (!it.begun && !echoes_.empty()) it.text = echoes_[static_cast<std::size_t>(index / n_)];
  it.begun = true;
  it.text += output.text;
  it.has_logprobs = it.has_logprobs || !output.logprobs.empty();
  it.logprobs.insert(it.logprobs.end(), std::make_move_iterator(output.logprobs.begin()), std::make_move_iterator(output.logprobs.end()));
  if (output.finish) it.finish = *std::move(output.finish);
}

std::string CompletionFormat::whole() const {
  std::string out = head(chat_ ? "chat.completion" : "text_completion") + R"(,"choices":[)";
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& it = choices_[i];
    out += (i > 0 ? "," : "") + std::string(R"({"index":)") + std::to_string(i);
    out += chat_ ? R"(,"message":{"role":"assistant","content":)" + json_string(it.text) + R"(,"refusal":null})" : R"(,"text":)" + json_string(it.text);
    out += R"(,"logprobs":)" + logprobs(it.logprobs, 0) + finish_text(&it.finish) + "}";
  }
  return out + R"(],"usage":)" + usage() + "}";
}

}  // namespace fixpoint::server
