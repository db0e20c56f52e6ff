#include "agent/detail/openai.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/detail/utf8.h"

namespace fixpoint::agent::detail {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using Kind = GenerateError::Kind;

constexpr std::size_t kMaxErrorBytes = 2'000;

/// Empty where there is no such text.
std::string text_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

tl::expected<std::unique_ptr<OpenAiServer>, std::string> OpenAiServer::open(OpenAiOptions options) {
  if (const std::size_t hash = options.base_url.find('#'); hash != std::string::npos) {
    if (options.model.empty()) options.model = options.base_url.substr(hash + 1);
    options.base_url.resize(hash);
  }
  auto url = parse_url(options.base_url);
  if (!url) return tl::unexpected(options.base_url + ": " + url.error());
  if (options.key.find_first_of("\r\n") != std::string::npos) return tl::unexpected(std::string("the key holds a line break"));
  return std::unique_ptr<OpenAiServer>(new OpenAiServer(std::move(options), *std::move(url)));
}

HttpRequest OpenAiServer::request_to(std::string_view path, Clock::time_point deadline) const {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  HttpRequest http{.url = base_,
                   .headers = {{"content-type", "application/json"}, {"accept", "text/event-stream, application/json"}},
                   .ca_file = options_.ca_file,
                   .connect_timeout = options_.connect_timeout,
                   .idle_timeout = options_.idle_timeout,
                   .total_timeout = std::max(left, milliseconds(1))};
  if (!options_.key.empty()) http.headers.emplace_back("authorization", "Bearer " + options_.key);
  while (http.url.target.ends_with('/')) http.url.target.pop_back();
  http.url.target += path;
  return http;
}

tl::expected<std::string, GenerateError> OpenAiServer::model_name(const std::stop_token& stop, Clock::time_point deadline) {
  {
    const std::scoped_lock lock(mutex_);
    if (!model_.empty()) return model_;
  }
  HttpRequest http = request_to("/models", deadline);
  http.method = "GET";
  std::string body;
  const auto head = exchange(
      http,
      [&body](const HttpHead&, std::string_view piece) {
        body += piece;
        return body.size() < (std::size_t{4} << 20);
      },
      stop);
  if (!head) return tl::unexpected(GenerateError{.kind = kind_of(head.error()), .detail = head.error().detail});
  if (head->status != 200) return tl::unexpected(refusal(*head, body));
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array() || json["data"].empty() ||
      !json["data"][0].is_object() || !json["data"][0].contains("id") || !json["data"][0]["id"].is_string()) {
    return tl::unexpected(GenerateError{.kind = Kind::malformed, .detail = "the server lists no model; name one"});
  }
  const std::scoped_lock lock(mutex_);
  model_ = json["data"][0]["id"].get<std::string>();
  return model_;
}

void OpenAiServer::hide_key(std::string& text) const {
  if (options_.key.empty()) return;
  constexpr std::string_view kHidden = "***";
  for (auto at = text.find(options_.key); at != std::string::npos; at = text.find(options_.key, at + kHidden.size())) {
    text.replace(at, options_.key.size(), kHidden);
  }
}

std::string OpenAiServer::name() const {
  const std::scoped_lock lock(mutex_);
  return model_.empty() ? options_.base_url : model_ + " at " + options_.base_url;
}

bool AnswerReader::take(const HttpHead& head, std::string_view piece) {
  if (head.status != 200 || !head.content_type.starts_with("text/event-stream")) {
    const std::size_t room = (head.status == 200 ? limits_.max_bytes * 8 + 65'536 : kMaxErrorBytes) - body_.size();
    body_ += piece.substr(0, std::min(room, piece.size()));
    return room > piece.size();
  }
  const bool fits = sse_.push(piece, [this](std::string_view data) { take_event(data); });
  if (!fits) error_ = "an event longer than 4 MiB";
  return error_.empty() && !done_;
}

tl::expected<Generation, GenerateError> AnswerReader::finish(const HttpHead& head) {
  if (head.content_type.starts_with("text/event-stream")) {
    sse_.finish([this](std::string_view data) { take_event(data); });
  } else {
    take_document();
  }
  if (!error_.empty()) return tl::unexpected(failure(Kind::malformed, error_));
  if (!finished_ && !done_) return tl::unexpected(failure(Kind::unavailable, "the answer broke off"));
  return Generation{.text = text_, .finish = finish_, .usage = usage()};
}

GenerateError AnswerReader::failure(Kind kind, std::string detail) const {
  return {.kind = kind, .detail = std::move(detail), .partial = text_, .usage = usage()};
}

void AnswerReader::take_event(std::string_view data) {
  if (done_ || !error_.empty()) return;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) {
    error_ = "an event that is not JSON";
    return;
  }
  take_usage(json);
  if (const auto it = json.find("error"); it != json.end() && !it->is_null()) {
    error_ = "the server says: " + it->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kMaxErrorBytes);
    return;
  }
  take_choice(json, "delta");
}

void AnswerReader::take_document() {
  const Json json = Json::parse(body_, nullptr, false);
  if (!json.is_object()) {
    error_ = "the answer is not JSON";
    return;
  }
  take_usage(json);
  take_choice(json, "message");
  if (!finished_ && !has_text()) error_ = "the answer has no choices";
  finished_ = true;
}

void AnswerReader::take_choice(const Json& json, const char* part) {
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty() || !(*choices)[0].is_object()) return;
  const Json& choice = (*choices)[0];
  const auto message = choice.find(part);
  const bool has_message = message != choice.end() && message->is_object();
  const std::string text = text_in(choice, "text") + (has_message ? text_in(*message, "content") : "");
  const std::string reason = text_in(choice, "finish_reason");
  if (!reason.empty()) finished_ = true;
  if (reason == "length") finish_ = Finish::length;
  // The first event of a chat, with the role, and the last, with the reason, stand for no token where they have no text.
  const bool bare = text.empty() && (!reason.empty() || (has_message && message->contains("role")));
  if (on_piece_ && (!bare || (finished_ && !told_piece_))) {
    told_piece_ = true;
    on_piece_();
  }
  add(text);
}

void AnswerReader::take_usage(const Json& json) {
  const auto it = json.find("usage");
  if (it == json.end() || !it->is_object()) return;
  const auto number = [](const Json& object, const char* name) -> std::int64_t {
    const auto found = object.find(name);
    return found != object.end() && found->is_number_integer() ? std::max<std::int64_t>(0, found->get<std::int64_t>()) : 0;
  };
  reported_ = Usage{.prompt_tokens = number(*it, "prompt_tokens"), .completion_tokens = number(*it, "completion_tokens")};
  const auto details = it->find("prompt_tokens_details");
  if (details != it->end() && details->is_object()) {
    reported_->cached_tokens = number(*details, "cached_tokens");
  } else if (const auto timings = json.find("timings"); timings != json.end() && timings->is_object() && timings->contains("prompt_n")) {
    // llama.cpp's server says instead how many of them it computed.
    reported_->cached_tokens = std::max<std::int64_t>(0, reported_->prompt_tokens - number(*timings, "prompt_n"));
  }
}

void AnswerReader::add(const std::string& piece) {
  if (piece.empty()) return;
  // A server that writes on and on is cut where its limit was: a piece is at least one token.
  const std::size_t room = limits_.max_bytes - std::min(limits_.max_bytes, text_.size());
  const std::size_t bytes = floor_character(piece, std::min(room, piece.size()));
  ++pieces_;
  text_ += piece.substr(0, bytes);
  if (on_text_ && bytes > 0) on_text_(std::string_view(piece).substr(0, bytes));
  if (bytes < piece.size() || pieces_ > limits_.max_tokens) {
    done_ = true;
    finish_ = Finish::length;
  }
}

Usage AnswerReader::usage() const {
  return reported_.value_or(Usage{.completion_tokens = std::min(pieces_, limits_.max_tokens)});
}

Json messages_json(const std::vector<Message>& messages) {
  Json out = Json::array();
  for (const Message& message : messages) {
    const char* role = message.role == Role::system ? "system" : message.role == Role::user ? "user" : "assistant";
    out.push_back({{"role", role}, {"content", message.content}});
  }
  return out;
}

GenerateError::Kind kind_of(const HttpError& error) {
  switch (error.kind) {
    case HttpError::Kind::cancelled: return Kind::cancelled;
    case HttpError::Kind::timeout: return Kind::timeout;
    case HttpError::Kind::tls: return Kind::refused;
    case HttpError::Kind::connect:
    case HttpError::Kind::broken: break;
  }
  return Kind::unavailable;
}

GenerateError refusal(const HttpHead& head, const std::string& body) {
  std::string words = body;
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    const Json& error = json.contains("error") ? json["error"] : json;
    if (error.is_object() && error.contains("message") && error["message"].is_string()) {
      words = error["message"].get<std::string>();
    } else if (error.is_string()) {
      words = error.get<std::string>();
    }
  }
  words = to_valid_utf8(words.substr(0, kMaxErrorBytes));
  const bool too_long = head.status == 400 && (words.find("context length") != std::string::npos ||
                                               words.find("context_length") != std::string::npos ||
                                               words.find("context size") != std::string::npos ||
                                               words.find("too long") != std::string::npos);
  const bool later = head.status == 408 || head.status == 409 || head.status == 425 || head.status == 429 || head.status >= 500;
  const std::string detail = "HTTP " + std::to_string(head.status) + (words.empty() ? "" : ": ") + words;
  return {.kind = too_long ? Kind::too_long : later ? Kind::unavailable : Kind::refused, .detail = detail};
}

}  // namespace fixpoint::agent::detail
