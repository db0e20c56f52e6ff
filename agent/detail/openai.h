#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/detail/http.h"
#include "agent/detail/sse.h"
#include "agent/generator.h"
#include "agent/openai_generator.h"

namespace fixpoint::agent::detail {

/// An OpenAI-compatible server's address, key and model, and how requests to it are made. Any thread may use it.
class OpenAiServer {
 public:
  using Clock = std::chrono::steady_clock;

  /// Error: the address or the key can't be used.
  [[nodiscard]] static tl::expected<std::unique_ptr<OpenAiServer>, std::string> open(OpenAiOptions options);

  /// A request to `path` below the base address ("/chat/completions").
  [[nodiscard]] HttpRequest request_to(std::string_view path, Clock::time_point deadline) const;
  /// The configured name, or the first one that the server lists.
  [[nodiscard]] tl::expected<std::string, GenerateError> model_name(const std::stop_token& stop, Clock::time_point deadline);
  /// Some servers repeat the key that they do not accept.
  void hide_key(std::string& text) const;

  [[nodiscard]] const OpenAiOptions& options() const { return options_; }
  /// "MODEL at URL", or the address where no model was named.
  [[nodiscard]] std::string name() const;

 private:
  OpenAiServer(OpenAiOptions options, Url base) : options_(std::move(options)), base_(std::move(base)), model_(options_.model) {}

  OpenAiOptions options_;
  Url base_;
  mutable std::mutex mutex_;
  std::string model_;  // guarded by mutex_
};

/// Where an answer is cut whatever the server does.
struct AnswerLimits {
  std::int64_t max_tokens = 0;  ///< pieces of text: each is at least one token
  std::size_t max_bytes = 0;
};

/// The text of an answer as it comes in, whatever its form (events or one JSON document; a chat's or a plain completion's).
class AnswerReader {
 public:
  /// `on_piece` is called for each event that stands for tokens, before its text is handed on: also where the text is empty,
  /// unless all that the event tells is the role or the reason of the end. Where there is no other, that of the end counts.
  AnswerReader(AnswerLimits limits, const OnText& on_text, std::function<void()> on_piece = {})
      : limits_(limits), on_text_(on_text), on_piece_(std::move(on_piece)) {}

  /// False: enough has been read.
  bool take(const HttpHead& head, std::string_view piece);
  [[nodiscard]] tl::expected<Generation, GenerateError> finish(const HttpHead& head);
  [[nodiscard]] GenerateError failure(GenerateError::Kind kind, std::string detail) const;
  /// What came instead of an answer, where the status was not 200.
  [[nodiscard]] const std::string& body() const { return body_; }

 private:
  [[nodiscard]] bool has_text() const { return !text_.empty(); }
  void take_event(std::string_view data);
  void take_document();
  void take_choice(const nlohmann::json& json, const char* part);
  void take_usage(const nlohmann::json& json);
  void add(const std::string& piece);
  [[nodiscard]] Usage usage() const;

  AnswerLimits limits_;
  const OnText& on_text_;
  std::function<void()> on_piece_;
  SseParser sse_;
  std::string text_, body_, error_;
  std::int64_t pieces_ = 0;
  std::optional<Usage> reported_;
  Finish finish_ = Finish::stop;
  bool finished_ = false;  // a finish reason came
  bool done_ = false;
  bool told_piece_ = false;
};

[[nodiscard]] nlohmann::json messages_json(const std::vector<Message>& messages);
[[nodiscard]] GenerateError::Kind kind_of(const HttpError& error);
/// What a status other than 200 means, with the server's own words.
[[nodiscard]] GenerateError refusal(const HttpHead& head, const std::string& body);

}  // namespace fixpoint::agent::detail
