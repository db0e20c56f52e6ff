#include "server/openai.h"

#include <algorithm>
#include <charconv>

#include "server/json_reader.h"

namespace fixpoint::server {
namespace {

using engine::TokenId;
using nlohmann::json;

constexpr std::int64_t kMaxInt = 1 << 30;

std::string at(std::string_view name, std::size_t index) { return std::string(name) + "[" + std::to_string(index) + "]"; }

/// A string, or a list of text parts that are joined.
std::optional<std::string> content_text(JsonReader& reader, const std::string& where, const json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    reader.fail(where, "must be a string or a list of text parts");
    return std::nullopt;
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const json& part = content[i];
    const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text") && part["text"].is_string();
    if (!is_text) {
      reader.fail(at(where, i), "must be a part {\"type\": \"text\", \"text\": …}; this model reads text only");
      return std::nullopt;
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

std::optional<engine::Role> role_of(const json& name) {
  if (name == "system" || name == "developer") return engine::Role::system;
  if (name == "user") return engine::Role::user;
  if (name == "assistant") return engine::Role::assistant;
  return std::nullopt;
}

void read_messages(JsonReader& reader, const json& list, std::vector<engine::Message>& out) {
  if (!list.is_array() || list.empty() || list.size() > kMaxMessages) return reader.fail("messages", "must be a list of 1 to " + std::to_string(kMaxMessages) + " messages");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& message = list[i];
    const std::string where = at("messages", i);
    if (!message.is_object() || !message.contains("role") || !message.contains("content")) {
      return reader.fail(where, "must be an object with role and content");
    }
    const auto role = role_of(message["role"]);
    if (!role) return reader.fail(where + ".role", "must be system, developer, user or assistant");
    auto text = content_text(reader, where + ".content", message["content"]);
    if (!text) return;
    out.push_back({*role, *std::move(text)});
  }
}

void read_stop(JsonReader& reader, std::vector<std::string>& out) {
  const json* stop = reader.find("stop");
  if (stop == nullptr) return;
  if (stop->is_string()) {
    out.push_back(stop->get<std::string>());
  } else if (stop->is_array() && stop->size() <= kMaxStops) {
    for (const json& it : *stop) {
      if (!it.is_string()) return reader.fail("stop", "must hold strings");
      out.push_back(it.get<std::string>());
    }
  } else {
    reader.fail("stop", "must be a string or at most " + std::to_string(kMaxStops) + " strings");
  }
  if (std::any_of(out.begin(), out.end(), [](const std::string& it) { return it.empty() || it.size() > 1024; })) {
    reader.fail("stop", "must not be empty or longer than 1024 bytes");
  }
}

/// A list of token ids; the engine checks them against the vocabulary.
bool read_tokens(const json& list, std::vector<TokenId>& out) {
  if (!list.is_array()) return false;
  for (const json& it : list) {
    if (!it.is_number_integer() || it < 0 || it > kMaxInt) return false;
    out.push_back(it.get<TokenId>());
  }
  return true;
}

void read_logit_bias(JsonReader& reader, engine::SamplingParams& sampling) {
  const json* bias = reader.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object() || bias->size() > 1024) return reader.fail("logit_bias", "must be an object of at most 1024 token ids");
  for (const auto& [name, value] : bias->items()) {
    TokenId token = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc() || end != name.data() + name.size() || token < 0) return reader.fail("logit_bias", "'" + name + "' is no token id");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) return reader.fail("logit_bias", "a bias must be a number from -100 to 100");
    sampling.logit_bias.emplace_back(token, value.get<float>());
  }
}

void read_sampling(JsonReader& reader, engine::SamplingParams& sampling) {
  reader.real("temperature", sampling.temperature, 0, 2);
  reader.real("top_p", sampling.top_p, 0, 1);
  if (sampling.top_p <= 0) sampling.top_p = 1e-6F;  // clients send 0 for "the likeliest only"
  reader.integer("top_k", sampling.top_k, -1, kMaxInt);
  if (sampling.top_k < 0) sampling.top_k = 0;
  reader.real("min_p", sampling.min_p, 0, 1);
  reader.real("repetition_penalty", sampling.repetition_penalty, 0.01, 100);
  reader.real("presence_penalty", sampling.presence_penalty, -2, 2);
  reader.real("frequency_penalty", sampling.frequency_penalty, -2, 2);
  reader.integer("seed", sampling.seed, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  read_logit_bias(reader, sampling);
}

void read_stream(JsonReader& reader, CompletionCall& call) {
  reader.truth("stream", call.stream);
  const json* options = reader.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return reader.fail("stream_options", "must be an object");
  JsonReader inner(*options);
  inner.truth("include_usage", call.include_usage);
  if (inner.failed()) reader.fail("stream_options", inner.error().message);
}

void read_prediction(JsonReader& reader, CompletionCall& call) {
  const json* prediction = reader.find("prediction");
  if (prediction == nullptr) return;
  if (!prediction->is_object() || prediction->value("type", json()) != "content" || !prediction->contains("content")) {
    return reader.fail("prediction", "must be {\"type\": \"content\", \"content\": …}");
  }
  if (auto text = content_text(reader, "prediction.content", (*prediction)["content"])) call.prediction = *std::move(text);
}

/// What would change the answer and is not there must be refused, not ignored.
void refuse_unsupported(JsonReader& reader) {
  for (const char* name : {"tools", "functions", "audio", "guided_json", "guided_regex", "guided_choice", "guided_grammar"}) {
    const json* value = reader.find(name);
    if (value != nullptr && !(value->is_array() && value->empty())) reader.fail(name, "is not supported");
  }
  const json* format = reader.find("response_format");
  if (format != nullptr && !(format->is_object() && format->value("type", json()) == "text")) reader.fail("response_format", "only {\"type\": \"text\"} is supported");
}

void read_common(JsonReader& reader, CompletionCall& call) {
  reader.text("model", call.model);
  read_sampling(reader, call.sampling);
  reader.integer("min_tokens", call.min_tokens, 0, kMaxInt);
  read_stop(reader, call.stop);
  if (const json* tokens = reader.find("stop_token_ids"); tokens != nullptr && (tokens->size() > 1024 || !read_tokens(*tokens, call.stop_tokens))) {
    reader.fail("stop_token_ids", "must be a list of at most 1024 token ids");
  }
  reader.truth("ignore_eos", call.ignore_eos);
  reader.integer("n", call.n, 1, kMaxChoices);
  reader.integer("priority", call.priority, -100, 100);
  read_stream(reader, call);
  read_prediction(reader, call);
  refuse_unsupported(reader);
}

void read_prompts(JsonReader& reader, std::vector<Prompt>& out) {
  const json* prompt = reader.find("prompt");
  if (prompt == nullptr) return reader.fail("prompt", "is missing");
  std::vector<TokenId> tokens;
  if (prompt->is_string()) {
    out.emplace_back(prompt->get<std::string>());
  } else if (!prompt->is_array() || prompt->empty()) {
    reader.fail("prompt", "must be a string, a list of strings, a list of token ids, or a list of such lists");
  } else if (prompt->front().is_number()) {
    if (!read_tokens(*prompt, tokens)) return reader.fail("prompt", "must hold token ids");
    out.emplace_back(std::move(tokens));
  } else if (prompt->size() > static_cast<std::size_t>(kMaxChoices)) {
    reader.fail("prompt", "must hold at most " + std::to_string(kMaxChoices) + " prompts");
  } else {
    for (std::size_t i = 0; i < prompt->size(); ++i) {
      const json& it = (*prompt)[i];
      tokens.clear();
      if (it.is_string()) {
        out.emplace_back(it.get<std::string>());
      } else if (read_tokens(it, tokens)) {
        out.emplace_back(tokens);
      } else {
        return reader.fail(at("prompt", i), "must be a string or a list of token ids");
      }
    }
  }
}

void read_chat_logprobs(JsonReader& reader, engine::SamplingParams& sampling) {
  reader.truth("logprobs", sampling.logprobs);
  reader.integer("top_logprobs", sampling.top_logprobs, 0, 20);
  if (sampling.top_logprobs > 0 && !sampling.logprobs) reader.fail("top_logprobs", "needs logprobs: true");
}

}  // namespace

tl::expected<CompletionCall, ApiError> parse_chat_call(std::string_view body) {
  const auto object = parse_body(body);
  if (!object) return tl::unexpected(object.error());
  JsonReader reader(*object);
  CompletionCall call{.chat = true};
  const json* messages = reader.find("messages");
  if (messages == nullptr) {
    reader.fail("messages", "is missing");
  } else {
    read_messages(reader, *messages, call.messages);
  }
  read_common(reader, call);
  reader.integer("max_tokens", call.max_tokens, 1, kMaxInt);
  reader.integer("max_completion_tokens", call.max_tokens, 1, kMaxInt);
  read_chat_logprobs(reader, call.sampling);
  if (reader.failed()) return tl::unexpected(reader.error());
  return call;
}

tl::expected<CompletionCall, ApiError> parse_completion_call(std::string_view body) {
  const auto object = parse_body(body);
  if (!object) return tl::unexpected(object.error());
  JsonReader reader(*object);
  CompletionCall call;
  call.max_tokens = 16;  // as OpenAI has it
  read_prompts(reader, call.prompts);
  read_common(reader, call);
  reader.integer("max_tokens", call.max_tokens, 1, kMaxInt);
  reader.truth("echo", call.echo);
  std::optional<int> logprobs;
  reader.integer("logprobs", logprobs, 0, 20);
  if (logprobs) {
    call.sampling.logprobs = true;
    call.sampling.top_logprobs = *logprobs;
    if (call.echo) reader.fail("echo", "is not supported together with logprobs");
  }
  std::string suffix;
  reader.text("suffix", suffix);
  if (!suffix.empty()) reader.fail("suffix", "is not supported");
  std::int64_t best_of = call.n;
  reader.integer("best_of", best_of, 1, kMaxChoices);
  if (best_of != call.n) reader.fail("best_of", "must equal n");
  if (static_cast<std::int64_t>(call.prompts.size()) * call.n > kMaxChoices) {
    reader.fail("n", "prompts times n must be at most " + std::to_string(kMaxChoices));
  }
  if (reader.failed()) return tl::unexpected(reader.error());
  return call;
}

tl::expected<TokenizeCall, ApiError> parse_tokenize_call(std::string_view body) {
  const auto object = parse_body(body);
  if (!object) return tl::unexpected(object.error());
  JsonReader reader(*object);
  TokenizeCall call;
  if (const json* messages = reader.find("messages"); messages != nullptr) {
    std::vector<engine::Message> list;
    read_messages(reader, *messages, list);
    call.text = std::move(list);
  } else if (reader.find("prompt") != nullptr) {
    std::string text;
    reader.text("prompt", text);
    call.text = std::move(text);
  } else {
    reader.fail("prompt", "is missing");
  }
  reader.truth("add_special_tokens", call.add_special_tokens);
  if (reader.failed()) return tl::unexpected(reader.error());
  return call;
}

tl::expected<std::vector<TokenId>, ApiError> parse_detokenize_call(std::string_view body) {
  const auto object = parse_body(body);
  if (!object) return tl::unexpected(object.error());
  JsonReader reader(*object);
  std::vector<TokenId> tokens;
  const json* list = reader.find("tokens");
  if (list == nullptr || !read_tokens(*list, tokens)) reader.fail("tokens", "must be a list of token ids");
  if (reader.failed()) return tl::unexpected(reader.error());
  return tokens;
}

}  // namespace fixpoint::server
