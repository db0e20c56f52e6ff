#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/tokenizer.h"

namespace fixpoint::engine {

enum class Role : std::uint8_t { system, user, assistant };

struct Message {
  Role role = Role::user;
  std::string content;
};

/// The chat formats we know. They are recognised from a model file's own template text.
enum class ChatFormat : std::uint8_t { chatml, llama2, llama3, mistral, deepseek_coder };

[[nodiscard]] std::string_view to_string(ChatFormat format);
[[nodiscard]] std::optional<ChatFormat> parse_chat_format(std::string_view name);

/// The format a Jinja template is for; an error that says so where it is none of ours.
[[nodiscard]] tl::expected<ChatFormat, std::string> recognise_chat_format(std::string_view jinja);

/// Prompt tokens for a conversation, BOS included where the format has one. The template's own markers become control
/// tokens; message content never does. If the last message is the assistant's, the prompt ends inside it, so that the
/// model continues it; otherwise it ends with an opened assistant turn.
///
/// The tokens are those of the original templates for the messages given. What those add of their own accord stays out:
/// the default system messages of Qwen2.5 and DeepSeek-Coder, the dates that Llama-3.1 puts before the system message,
/// and Qwen3's removal of past thoughts. Content is trimmed where the original trims it, except at the end of a message
/// that the model is to continue. Mistral's three forms are told apart by the tokenizer (whether "[INST]" is a token,
/// and its kind).
/// Error: the tokenizer lacks a marker that the format needs, or the roles are in an order that the format has no form for.
[[nodiscard]] tl::expected<std::vector<TokenId>, std::string> render_chat(ChatFormat format, const Tokenizer& tokenizer,
                                                                          std::span<const Message> messages);

/// Tokens that end an assistant turn in this format, with the tokenizer's own stop tokens.
[[nodiscard]] std::vector<TokenId> stop_tokens(ChatFormat format, const Tokenizer& tokenizer);

}  // namespace fixpoint::engine
