#include "agent/openai_generator.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "agent/detail/http.h"
#include "agent/detail/sse.h"
#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using Kind = GenerateError::Kind;

constexpr std::size_t kMaxErrorBytes = 2'000;

std::string_view role_name(Role role) {
  return role == Role::system ? "system" : role == Role::user ? "user" : "assistant";
}

/// The text of an answer as it comes in, whatever its form (events or one JSON document).
class Reader {
 public:
  Reader(const GenerateRequest& request, const OnText& on_text) : request_(request), on_text_(on_text) {}

  /// False: enough has been read.
  bool take(const detail::HttpHead& head, std::string_view piece) {
    if (head.status != 200 || !head.content_type.starts_with("text/event-stream")) {
      const std::size_t room = (head.status == 200 ? request_.max_bytes * 8 + 65'536 : kMaxErrorBytes) - body_.size();
      body_ += piece.substr(0, std::min(room, piece.size()));
      return room > piece.size();
    }
    const bool fits = sse_.push(piece, [this](std::string_view data) { take_event(data); });
    if (!fits) error_ = "an event longer than 4 MiB";
    return error_.empty() && !done_;
  }

  tl::expected<Generation, GenerateError> finish(const detail::HttpHead& head) {
    if (head.content_type.starts_with("text/event-stream")) {
      sse_.finish([this](std::string_view data) { take_event(data); });
    } else {
      take_document();
    }
    if (!error_.empty()) return tl::unexpected(failure(Kind::malformed, error_));
    if (!finished_ && !done_) return tl::unexpected(failure(Kind::unavailable, "the answer broke off"));
    return Generation{.text = text_, .finish = finish_, .usage = usage()};
  }

  GenerateError failure(Kind kind, std::string detail) const {
    return {.kind = kind, .detail = std::move(detail), .partial = text_, .usage = usage()};
  }

  [[nodiscard]] bool has_text() const { return !text_.empty(); }
  [[nodiscard]] const std::string& body() const { return body_; }

 private:
  void take_event(std::string_view data) {
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

  void take_document() {
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

  void take_choice(const Json& json, const char* part) {
    const auto choices = json.find("choices");
    if (choices == json.end() || !choices->is_array() || choices->empty() || !(*choices)[0].is_object()) return;
    const Json& choice = (*choices)[0];
    if (const auto message = choice.find(part); message != choice.end() && message->is_object()) {
      const auto content = message->find("content");
      if (content != message->end() && content->is_string()) add(content->get_ref<const std::string&>());
    }
    const auto reason = choice.find("finish_reason");
    if (reason != choice.end() && reason->is_string()) {
      finished_ = true;
      if (*reason == "length") finish_ = Finish::length;
    }
  }

  void take_usage(const Json& json) {
    const auto it = json.find("usage");
    if (it == json.end() || !it->is_object()) return;
    const auto number = [](const Json& object, const char* name) -> std::int64_t {
      const auto found = object.find(name);
      return found != object.end() && found->is_number_integer() ? std::max<std::int64_t>(0, found->get<std::int64_t>()) : 0;
    };
    reported_ = Usage{.prompt_tokens = number(*it, "prompt_tokens"), .completion_tokens = number(*it, "completion_tokens")};
    const auto details = it->find("prompt_tokens_details");
    if (details != it->end() && details->is_object()) reported_->cached_tokens = number(*details, "cached_tokens");
  }

  void add(const std::string& piece) {
    if (piece.empty()) return;
    // A server that writes on and on is cut where its limit was: a piece is at least one token.
    const std::size_t room = request_.max_bytes - std::min(request_.max_bytes, text_.size());
    const std::size_t bytes = detail::floor_character(piece, std::min(room, piece.size()));
    ++pieces_;
    text_ += piece.substr(0, bytes);
    if (on_text_ && bytes > 0) on_text_(std::string_view(piece).substr(0, bytes));
    if (bytes < piece.size() || pieces_ > request_.max_tokens) {
      done_ = true;
      finish_ = Finish::length;
    }
  }

  [[nodiscard]] Usage usage() const {
    return reported_.value_or(Usage{.completion_tokens = std::min(pieces_, request_.max_tokens)});
  }

  const GenerateRequest& request_;
  const OnText& on_text_;
  detail::SseParser sse_;
  std::string text_, body_, error_;
  std::int64_t pieces_ = 0;
  std::optional<Usage> reported_;
  Finish finish_ = Finish::stop;
  bool finished_ = false;  // a finish reason came
  bool done_ = false;
};

class OpenAiGenerator final : public Generator {
 public:
  OpenAiGenerator(OpenAiOptions options, detail::Url base) : options_(std::move(options)), base_(std::move(base)) {}

  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text,
                                                   std::stop_token stop) override {
    const Clock::time_point deadline = Clock::now() + request.timeout;
    milliseconds backoff = options_.first_backoff;
    for (int tries = 0;; ++tries) {
      std::optional<std::chrono::seconds> retry_after;
      auto result = try_once(request, on_text, stop, deadline, retry_after);
      if (!result) hide_key(result.error().detail);
      if (result || result.error().kind != Kind::unavailable || !result.error().partial.empty() || tries == options_.retries) {
        return result;
      }
      const milliseconds pause = retry_after ? milliseconds(*retry_after) : backoff;
      if (Clock::now() + pause >= deadline) return result;
      if (!wait(pause, stop)) return tl::unexpected(GenerateError{.kind = Kind::cancelled});
      backoff *= 2;
    }
  }

  std::string name() const override {
    const std::scoped_lock lock(mutex_);
    const std::string where = options_.base_url;
    return options_.model.empty() ? where : options_.model + " at " + where;
  }

 private:
  tl::expected<Generation, GenerateError> try_once(const GenerateRequest& request, const OnText& on_text, const std::stop_token& stop,
                                                   Clock::time_point deadline, std::optional<std::chrono::seconds>& retry_after) {
    auto model = model_name(stop, deadline);
    if (!model) return tl::unexpected(model.error());
    detail::HttpRequest http = request_to("/chat/completions", deadline);
    http.body = body_of(request, *model);
    Reader reader(request, on_text);
    const auto head = detail::exchange(
        http, [&reader](const detail::HttpHead& it, std::string_view piece) { return reader.take(it, piece); }, stop);
    if (!head) return tl::unexpected(reader.failure(kind_of(head.error()), head.error().detail));
    if (head->status == 200) return reader.finish(*head);
    retry_after = head->retry_after;
    return tl::unexpected(refusal(*head, reader.body()));
  }

  static Kind kind_of(const detail::HttpError& error) {
    switch (error.kind) {
      case detail::HttpError::Kind::cancelled: return Kind::cancelled;
      case detail::HttpError::Kind::timeout: return Kind::timeout;
      case detail::HttpError::Kind::tls: return Kind::refused;
      case detail::HttpError::Kind::connect:
      case detail::HttpError::Kind::broken: break;
    }
    return Kind::unavailable;
  }

  /// What a status other than 200 means, with the server's own words.
  static GenerateError refusal(const detail::HttpHead& head, const std::string& body) {
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
    words = detail::to_valid_utf8(words.substr(0, kMaxErrorBytes));
    const bool too_long = head.status == 400 && (words.find("context length") != std::string::npos ||
                                                 words.find("context_length") != std::string::npos ||
                                                 words.find("context size") != std::string::npos ||
                                                 words.find("too long") != std::string::npos);
    const bool later = head.status == 408 || head.status == 409 || head.status == 425 || head.status == 429 || head.status >= 500;
    const std::string detail = "HTTP " + std::to_string(head.status) + (words.empty() ? "" : ": ") + words;
    return {.kind = too_long ? Kind::too_long : later ? Kind::unavailable : Kind::refused, .detail = detail};
  }

  detail::HttpRequest request_to(std::string_view path, Clock::time_point deadline) const {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    detail::HttpRequest http{.url = base_,
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

  static std::string body_of(const GenerateRequest& request, const std::string& model) {
    Json messages = Json::array();
    for (const Message& message : request.messages) {
      messages.push_back({{"role", role_name(message.role)}, {"content", message.content}});
    }
    const Json body{{"model", model},
                    {"messages", std::move(messages)},
                    {"max_tokens", request.max_tokens},
                    {"temperature", request.temperature},
                    {"top_p", request.top_p},
                    {"seed", request.seed},
                    {"stream", true},
                    {"stream_options", {{"include_usage", true}}}};
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  /// The configured name, or the first one that the server lists.
  tl::expected<std::string, GenerateError> model_name(const std::stop_token& stop, Clock::time_point deadline) {
    {
      const std::scoped_lock lock(mutex_);
      if (!options_.model.empty()) return options_.model;
    }
    detail::HttpRequest http = request_to("/models", deadline);
    http.method = "GET";
    std::string body;
    const auto head = detail::exchange(
        http,
        [&body](const detail::HttpHead&, std::string_view piece) {
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
    options_.model = json["data"][0]["id"].get<std::string>();
    return options_.model;
  }

  /// Some servers repeat the key that they do not accept.
  void hide_key(std::string& text) const {
    if (options_.key.empty()) return;
    for (auto at = text.find(options_.key); at != std::string::npos; at = text.find(options_.key, at)) {
      text.replace(at, options_.key.size(), "***");
    }
  }

  static bool wait(milliseconds pause, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, pause, [] { return false; });
    return !stop.stop_requested();
  }

  mutable std::mutex mutex_;  // guards options_.model
  OpenAiOptions options_;
  detail::Url base_;
};

}  // namespace

tl::expected<std::unique_ptr<Generator>, std::string> make_openai_generator(OpenAiOptions options) {
  if (const std::size_t hash = options.base_url.find('#'); hash != std::string::npos) {
    if (options.model.empty()) options.model = options.base_url.substr(hash + 1);
    options.base_url.resize(hash);
  }
  auto url = detail::parse_url(options.base_url);
  if (!url) return tl::unexpected(options.base_url + ": " + url.error());
  if (options.key.find_first_of("\r\n") != std::string::npos) return tl::unexpected(std::string("the key holds a line break"));
  return std::make_unique<OpenAiGenerator>(std::move(options), *std::move(url));
}

}  // namespace fixpoint::agent
