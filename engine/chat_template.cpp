#include "engine/chat_template.h"

#include <algorithm>
#include <utility>

#include "engine/detail/prompt_builder.h"
#include "engine/detail/trim.h"

namespace fixpoint::engine {
namespace {

using detail::PromptBuilder;
using detail::trim_end;
using detail::trim_start;

using Messages = std::span<const Message>;
using Error = std::string;

/// Whether the prompt ends inside this message.
bool is_continued(Messages messages, std::size_t at) {
  return at + 1 == messages.size() && messages[at].role == Role::assistant;
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::system: return "system";
    case Role::user: return "user";
    case Role::assistant: break;
  }
  return "assistant";
}

std::string_view trimmed(Messages messages, std::size_t at) {
  const std::string_view content = trim_start(messages[at].content);
  return is_continued(messages, at) ? content : trim_end(content);
}

void render_chatml(PromptBuilder& prompt, Messages messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    prompt.marker("<|im_start|>").text(name_of(messages[i].role)).text("\n").text(messages[i].content);
    if (is_continued(messages, i)) return;
    prompt.marker("<|im_end|>").text("\n");
  }
  prompt.marker("<|im_start|>").text("assistant\n");
}

void render_llama3(PromptBuilder& prompt, Messages messages) {
  const auto header = [&](Role role) {
    prompt.marker("<|start_header_id|>").text(name_of(role)).marker("<|end_header_id|>").text("\n\n");
  };
  prompt.bos();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    header(messages[i].role);
    prompt.text(trimmed(messages, i));
    if (is_continued(messages, i)) return;
    prompt.marker("<|eot_id|>");
  }
  header(Role::assistant);
}

void render_deepseek_coder(PromptBuilder& prompt, Messages messages) {
  prompt.bos();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& content = messages[i].content;
    switch (messages[i].role) {
      case Role::system:
        prompt.text(content);
        break;
      case Role::user:
        prompt.text("### Instruction:\n").text(content).text("\n");
        break;
      case Role::assistant:
        prompt.text("### Response:\n").text(content);
        if (is_continued(messages, i)) return;
        prompt.text("\n").marker("<|EOT|>").text("\n");
        break;
    }
  }
  prompt.text("### Response:\n");
}

/// [system] user (assistant user)*, with or without a last assistant: what Llama-2 and Mistral have forms for.
std::optional<Error> check_alternation(Messages messages, ChatFormat format) {
  const std::size_t first = messages[0].role == Role::system ? 1 : 0;
  if (first == messages.size()) {
    return "the " + std::string(to_string(format)) + " chat format needs a user's message after the system's";
  }
  for (std::size_t i = first; i < messages.size(); ++i) {
    const Role expected = (i - first) % 2 == 0 ? Role::user : Role::assistant;
    if (messages[i].role != expected) {
      return "message " + std::to_string(i) + " is the " + std::string(name_of(messages[i].role)) + "'s, but in the " +
             std::string(to_string(format)) + " chat format it must be the " + std::string(name_of(expected)) +
             "'s: one system message at most, then user and assistant in turn";
    }
  }
  return std::nullopt;
}

void render_llama2(PromptBuilder& prompt, Messages messages) {
  const bool has_system = messages[0].role == Role::system;
  for (std::size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    if (messages[i].role == Role::user) {
      const bool with_system = has_system && i == 1;
      const std::string content =
          with_system ? "<<SYS>>\n" + messages[0].content + "\n<</SYS>>\n\n" + messages[i].content : messages[i].content;
      prompt.bos().one_space().text("[INST] ").text(trim_end(trim_start(content))).text(" [/INST]");
    } else {
      prompt.text(" ").text(trimmed(messages, i));
      if (is_continued(messages, i)) return;
      prompt.text(" ").eos();
    }
  }
}

/// v1 writes "[INST]" as text and puts the system message into the first user message; v3 has tokens for the markers and
/// puts it into the last. A space follows the markers where the tokenizer is SentencePiece, none where it is byte-level.
void render_mistral(PromptBuilder& prompt, Messages messages, const Tokenizer& tokenizer) {
  const bool has_markers = tokenizer.find("[INST]").has_value();
  const bool spaced = tokenizer.spec().kind == TokenizerSpec::Kind::sentencepiece_bpe;
  const bool has_system = messages[0].role == Role::system;
  const std::size_t first = has_system ? 1 : 0;
  std::size_t with_system = first;
  if (has_markers) {
    for (std::size_t i = first; i < messages.size(); ++i) {
      with_system = messages[i].role == Role::user ? i : with_system;
    }
  }
  prompt.bos();
  for (std::size_t i = first; i < messages.size(); ++i) {
    if (messages[i].role == Role::user) {
      if (has_markers) prompt.marker("[INST]");
      if (spaced) prompt.one_space();
      if (!has_markers) prompt.text("[INST] ");
      if (has_system && i == with_system) prompt.text(messages[0].content).text("\n\n");
      prompt.text(messages[i].content);
      if (has_markers) prompt.marker("[/INST]");
      if (!has_markers) prompt.text(" [/INST]");
    } else {
      if (spaced && has_markers) prompt.one_space();
      if (!has_markers) prompt.text(" ");
      prompt.text(messages[i].content);
      if (is_continued(messages, i)) return;
      prompt.eos();
    }
  }
}

std::vector<std::string_view> end_markers(ChatFormat format) {
  switch (format) {
    case ChatFormat::chatml: return {"<|im_end|>", "<|endoftext|>"};
    case ChatFormat::llama3: return {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"};
    case ChatFormat::deepseek_coder: return {"<|EOT|>"};
    case ChatFormat::llama2:
    case ChatFormat::mistral: break;
  }
  return {};
}

}  // namespace

tl::expected<std::vector<TokenId>, std::string> render_chat(ChatFormat format, const Tokenizer& tokenizer,
                                                            Messages messages) {
  if (messages.empty()) return tl::make_unexpected(Error("a conversation needs at least one message"));
  if (format == ChatFormat::llama2 || format == ChatFormat::mistral) {
    if (auto error = check_alternation(messages, format)) return tl::make_unexpected(std::move(*error));
  }
  PromptBuilder prompt(tokenizer);
  switch (format) {
    case ChatFormat::chatml: render_chatml(prompt, messages); break;
    case ChatFormat::llama2: render_llama2(prompt, messages); break;
    case ChatFormat::llama3: render_llama3(prompt, messages); break;
    case ChatFormat::mistral: render_mistral(prompt, messages, tokenizer); break;
    case ChatFormat::deepseek_coder: render_deepseek_coder(prompt, messages); break;
  }
  auto tokens = prompt.finish();
  if (!tokens) {
    return tl::make_unexpected("the " + std::string(to_string(format)) + " chat format needs " + tokens.error() +
                               ", which this model's tokenizer lacks");
  }
  return std::move(*tokens);
}

std::vector<TokenId> stop_tokens(ChatFormat format, const Tokenizer& tokenizer) {
  std::vector<TokenId> stops;
  const auto add = [&](std::optional<TokenId> token) {
    if (token && std::find(stops.begin(), stops.end(), *token) == stops.end()) stops.push_back(*token);
  };
  for (const std::string_view marker : end_markers(format)) {
    const auto token = tokenizer.find(marker);
    const auto type = token ? tokenizer.spec().types[static_cast<std::size_t>(*token)] : TokenType::normal;
    if (type == TokenType::control || type == TokenType::user_defined) add(token);
  }
  const TokenizerSpec& spec = tokenizer.spec();
  add(spec.eot);
  add(spec.eos);
  for (const TokenId token : spec.stop_tokens) add(token);
  return stops;
}

}  // namespace fixpoint::engine
