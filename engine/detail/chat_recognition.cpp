#include <array>
#include <utility>

#include "engine/chat_template.h"

namespace fixpoint::engine {
namespace {

constexpr std::array<std::pair<ChatFormat, std::string_view>, 5> kNames{{
    {ChatFormat::chatml, "chatml"},
    {ChatFormat::llama2, "llama2"},
    {ChatFormat::llama3, "llama3"},
    {ChatFormat::mistral, "mistral"},
    {ChatFormat::deepseek_coder, "deepseek-coder"},
}};

/// Markers of formats that are none of ours, though their templates may hold a marker of one of ours too.
struct Foreign {
  std::string_view marker;
  std::string_view name;
};
constexpr std::array kForeign{
    Foreign{"<|im_sep|>", "Phi-4"},
    Foreign{"[SYSTEM_PROMPT]", "Mistral with system turns (v7)"},
    Foreign{"<｜User｜>", "DeepSeek-V2.5, V3 and R1"},
    Foreign{"<start_of_turn>", "Gemma"},
    Foreign{"<|header_start|>", "Llama 4"},
    Foreign{"<|start_of_role|>", "Granite"},
    Foreign{"<|START_OF_TURN_TOKEN|>", "Command R"},
    Foreign{"<|channel|>", "gpt-oss"},
    Foreign{"[gMASK]", "GLM"},
    Foreign{"<|user|>", "Zephyr, TinyLlama-Chat, Phi-3 and others"},
};
/// Words that only say something where no marker does.
constexpr std::array kForeignWords{
    Foreign{"### Instruction:", "Alpaca"},
    Foreign{"USER:", "Vicuna"},
};

std::string known_formats() {
  std::string list;
  for (const auto& [format, name] : kNames) {
    list.append(list.empty() ? "" : ", ").append(name);
  }
  return list;
}

}  // namespace

std::string_view to_string(ChatFormat format) {
  for (const auto& [known, name] : kNames) {
    if (known == format) return name;
  }
  return "unknown";
}

std::optional<ChatFormat> parse_chat_format(std::string_view name) {
  for (const auto& [format, known] : kNames) {
    if (known == name) return format;
  }
  return std::nullopt;
}

tl::expected<ChatFormat, std::string> recognise_chat_format(std::string_view jinja) {
  const auto has = [jinja](std::string_view marker) { return jinja.find(marker) != std::string_view::npos; };
  const auto refuse = [](std::string why) {
    return tl::make_unexpected("the model file's chat template " + std::move(why) +
                               "; choose one of: " + known_formats());
  };
  const auto foreign = [&](const Foreign& format) {
    return refuse("is not supported: it uses '" + std::string(format.marker) + "', a marker of " +
                  std::string(format.name));
  };
  for (const Foreign& format : kForeign) {
    if (has(format.marker)) return foreign(format);
  }
  if (has("<|im_start|>") && has("<|im_end|>")) return ChatFormat::chatml;
  if (has("<|start_header_id|>") && has("<|eot_id|>")) return ChatFormat::llama3;
  if (has("[INST]") && has("[/INST]")) return has("<<SYS>>") ? ChatFormat::llama2 : ChatFormat::mistral;
  if (has("### Instruction:") && has("<|EOT|>")) return ChatFormat::deepseek_coder;
  for (const Foreign& format : kForeignWords) {
    if (has(format.marker)) return foreign(format);
  }
  return refuse("is of no format that is known");
}

}  // namespace fixpoint::engine
