#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "engine/chat_template.h"
#include "engine/request.h"
#include "server/http.h"

namespace fixpoint::server {

/// Bounds of one request, whatever its size in bytes.
inline constexpr int kMaxJsonDepth = 32;
inline constexpr int kMaxChoices = 128;   ///< prompts times n
inline constexpr int kMaxStops = 16;
inline constexpr int kMaxMessages = 4'096;

using Prompt = std::variant<std::string, std::vector<engine::TokenId>>;

/// A request for /v1/chat/completions (`messages`) or /v1/completions (`prompts`), as values.
struct CompletionCall {
  bool chat = false;
  std::string model;                      ///< empty: whichever there is
  std::vector<engine::Message> messages;
  std::vector<Prompt> prompts;
  engine::SamplingParams sampling;
  std::optional<int> max_tokens;
  int min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<engine::TokenId> stop_tokens;
  bool ignore_eos = false;
  int n = 1;
  int priority = 0;
  std::string prediction;                 ///< text that the answer is likely to resemble
  bool stream = false;
  bool include_usage = false;             ///< one more chunk with the usage
  bool echo = false;
};

[[nodiscard]] tl::expected<CompletionCall, ApiError> parse_chat_call(std::string_view body);
[[nodiscard]] tl::expected<CompletionCall, ApiError> parse_completion_call(std::string_view body);

/// /tokenize: {"prompt": text} or {"messages": […]}; `special`: text such as <|im_end|> becomes control tokens.
struct TokenizeCall {
  std::variant<std::string, std::vector<engine::Message>> text;
  bool add_special_tokens = true;
};
[[nodiscard]] tl::expected<TokenizeCall, ApiError> parse_tokenize_call(std::string_view body);
/// /detokenize: {"tokens": […]}
[[nodiscard]] tl::expected<std::vector<engine::TokenId>, ApiError> parse_detokenize_call(std::string_view body);

}  // namespace fixpoint::server
