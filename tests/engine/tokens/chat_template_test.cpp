#include "engine/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/engine/tokens/small_vocabulary.h"

namespace fixpoint::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::build;

constexpr std::array kFormats{ChatFormat::chatml, ChatFormat::llama2, ChatFormat::llama3, ChatFormat::mistral,
                              ChatFormat::deepseek_coder};

void add_control(TokenizerSpec& spec, const std::string& spelling) {
  spec.tokens.push_back(spelling);
  spec.types.push_back(TokenType::control);
  if (spec.kind == TokenizerSpec::Kind::sentencepiece_bpe) spec.scores.push_back(0);
}

/// The small byte-level vocabulary with every marker of the formats, and BOS.
Tokenizer byte_level() {
  TokenizerSpec spec = testing::small_byte_level_spec(PreTokenizer::llama3);
  for (const char* marker : {"<bos>", "<|im_end|>", "<|endoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                             "<|end_of_text|>", "<|EOT|>"}) {
    add_control(spec, marker);
  }
  spec.bos = static_cast<TokenId>(spec.tokens.size() - 8);
  return build(std::move(spec));
}

Tokenizer sentencepiece(bool with_markers, bool prefix_once) {
  TokenizerSpec spec = testing::small_sentencepiece_spec();
  spec.space_prefix_once = prefix_once;
  if (with_markers) {
    add_control(spec, "[INST]");
    add_control(spec, "[/INST]");
  }
  return build(std::move(spec));
}

/// The prompt as text, its control tokens between « and ».
std::string shown(ChatFormat format, const Tokenizer& tokenizer, const std::vector<Message>& messages) {
  const auto tokens = render_chat(format, tokenizer, messages);
  if (!tokens) return "error: " + tokens.error();
  std::string out;
  for (const TokenId token : *tokens) {
    out += tokenizer.is_control(token) ? "«" + tokenizer.spec().tokens[static_cast<std::size_t>(token)] + "»"
                                       : std::string(tokenizer.token_bytes(token));
  }
  return out;
}

const std::vector<Message> kDialogue{{Role::system, "sys"}, {Role::user, " a "}, {Role::assistant, "b\n"}, {Role::user, "c"}};

TEST(ChatTemplateTest, ChatmlMarksEachTurn) {
  EXPECT_EQ(shown(ChatFormat::chatml, byte_level(), kDialogue),
            "«<|im_start|>»system\nsys«<|im_end|>»\n«<|im_start|>»user\n a «<|im_end|>»\n"
            "«<|im_start|>»assistant\nb\n«<|im_end|>»\n«<|im_start|>»user\nc«<|im_end|>»\n«<|im_start|>»assistant\n");
}

TEST(ChatTemplateTest, Llama3TrimsAndBeginsWithBos) {
  EXPECT_EQ(shown(ChatFormat::llama3, byte_level(), kDialogue),
            "«<bos>»«<|start_header_id|>»system«<|end_header_id|>»\n\nsys«<|eot_id|>»"
            "«<|start_header_id|>»user«<|end_header_id|>»\n\na«<|eot_id|>»"
            "«<|start_header_id|>»assistant«<|end_header_id|>»\n\nb«<|eot_id|>»"
            "«<|start_header_id|>»user«<|end_header_id|>»\n\nc«<|eot_id|>»"
            "«<|start_header_id|>»assistant«<|end_header_id|>»\n\n");
}

TEST(ChatTemplateTest, DeepseekCoderWritesHeadings) {
  EXPECT_EQ(shown(ChatFormat::deepseek_coder, byte_level(), kDialogue),
            "«<bos>»sys### Instruction:\n a \n### Response:\nb\n\n«<|EOT|>»\n### Instruction:\nc\n### Response:\n");
}

TEST(ChatTemplateTest, Llama2PutsTheSystemMessageIntoTheFirstUserMessage) {
  const std::string want = "«<s>» [INST] <<SYS>>\nsys\n<</SYS>>\n\n a [/INST] b «</s>»«<s>» [INST] c [/INST]";
  EXPECT_EQ(shown(ChatFormat::llama2, sentencepiece(false, false), kDialogue), want);
  EXPECT_EQ(shown(ChatFormat::llama2, sentencepiece(false, true), kDialogue), want);
}

TEST(ChatTemplateTest, MistralWithoutMarkerTokensIsText) {
  const std::string want = "«<s>» [INST] sys\n\n a  [/INST] b\n«</s>» [INST] c [/INST]";
  EXPECT_EQ(shown(ChatFormat::mistral, sentencepiece(false, false), kDialogue), want);
  EXPECT_EQ(shown(ChatFormat::mistral, sentencepiece(false, true), kDialogue), want);
}

TEST(ChatTemplateTest, MistralWithMarkerTokensPutsTheSystemMessageIntoTheLastUserMessage) {
  const std::string want = "«<s>»«[INST]»  a «[/INST]» b\n«</s>»«[INST]» sys\n\nc«[/INST]»";
  EXPECT_EQ(shown(ChatFormat::mistral, sentencepiece(true, false), kDialogue), want);
  EXPECT_EQ(shown(ChatFormat::mistral, sentencepiece(true, true), kDialogue), want);
}

TEST(ChatTemplateTest, MistralOnAByteLevelTokenizerHasNoSpaces) {
  TokenizerSpec spec = testing::small_byte_level_spec(PreTokenizer::llama3);
  for (const char* marker : {"<bos>", "[INST]", "[/INST]"}) add_control(spec, marker);
  spec.bos = static_cast<TokenId>(spec.tokens.size() - 3);
  EXPECT_EQ(shown(ChatFormat::mistral, build(std::move(spec)), kDialogue),
            "«<bos>»«[INST]» a «[/INST]»b\n«<|end|>»«[INST]»sys\n\nc«[/INST]»");
}

TEST(ChatTemplateTest, ALastAssistantMessageIsLeftOpen) {
  std::vector<Message> messages{{Role::user, "a"}, {Role::assistant, "x = \n"}};
  EXPECT_THAT(shown(ChatFormat::chatml, byte_level(), messages), ::testing::EndsWith("«<|im_start|>»assistant\nx = \n"));
  EXPECT_THAT(shown(ChatFormat::llama3, byte_level(), messages), ::testing::EndsWith("«<|end_header_id|>»\n\nx = \n"));
  EXPECT_THAT(shown(ChatFormat::deepseek_coder, byte_level(), messages), ::testing::EndsWith("### Response:\nx = \n"));
  EXPECT_THAT(shown(ChatFormat::llama2, sentencepiece(false, false), messages), ::testing::EndsWith(" [/INST] x = \n"));
  EXPECT_THAT(shown(ChatFormat::mistral, sentencepiece(true, false), messages), ::testing::EndsWith("«[/INST]» x = \n"));
}

TEST(ChatTemplateTest, ContentNeverBecomesAControlToken) {
  std::mt19937 random(7);
  const std::array tokenizers{byte_level(), sentencepiece(false, false), sentencepiece(true, true)};
  for (int i = 0; i < 600; ++i) {
    const Tokenizer& tokenizer = tokenizers[static_cast<std::size_t>(i) % tokenizers.size()];
    for (const ChatFormat format : kFormats) {
      std::vector<Message> plain{{Role::system, "s"}, {Role::user, "u"}, {Role::assistant, "a"}, {Role::user, "u"}};
      const auto reference = render_chat(format, tokenizer, plain);
      if (!reference) continue;
      for (Message& message : plain) message.content += testing::random_text(random, 8) + "<|im_end|><|eot_id|></s>[INST]<|EOT|>";
      const auto tokens = render_chat(format, tokenizer, plain);
      const auto controls = [&](const std::vector<TokenId>& all) {
        std::vector<TokenId> out;
        std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](TokenId id) { return tokenizer.is_control(id); });
        return out;
      };
      ASSERT_TRUE(tokens);
      ASSERT_EQ(controls(*tokens), controls(*reference)) << to_string(format);
    }
  }
}

TEST(ChatTemplateTest, AMissingMarkerIsNamed) {
  const Tokenizer tokenizer = build(testing::small_byte_level_spec(PreTokenizer::qwen2));
  const std::vector<Message> messages{{Role::user, "a"}};
  EXPECT_EQ(shown(ChatFormat::chatml, tokenizer, messages),
            "error: the chatml chat format needs the token '<|im_end|>', which this model's tokenizer lacks");
  EXPECT_EQ(shown(ChatFormat::llama3, tokenizer, messages),
            "error: the llama3 chat format needs a BOS token, which this model's tokenizer lacks");
}

TEST(ChatTemplateTest, RolesThatTheFormatHasNoFormForAreAnError) {
  const Tokenizer tokenizer = sentencepiece(false, false);
  const auto error = [&](std::vector<Message> messages) { return shown(ChatFormat::llama2, tokenizer, messages); };
  EXPECT_THAT(error({{Role::user, "a"}, {Role::user, "b"}}), HasSubstr("message 1 is the user's, but in the llama2 chat format"));
  EXPECT_THAT(error({{Role::assistant, "a"}}), HasSubstr("message 0 is the assistant's"));
  EXPECT_THAT(error({{Role::user, "a"}, {Role::system, "b"}}), HasSubstr("message 1 is the system's"));
  EXPECT_THAT(error({{Role::system, "a"}}), HasSubstr("needs a user's message"));
  EXPECT_THAT(error({}), HasSubstr("at least one message"));
}

TEST(ChatTemplateTest, TurnsEndWithTheFormatsMarkersAndTheTokenizersStops) {
  const Tokenizer tokenizer = byte_level();
  const auto id = [&](const char* spelling) { return *tokenizer.find(spelling); };
  EXPECT_THAT(stop_tokens(ChatFormat::chatml, tokenizer), ElementsAre(id("<|im_end|>"), id("<|endoftext|>"), id("<|end|>")));
  EXPECT_THAT(stop_tokens(ChatFormat::llama3, tokenizer), ElementsAre(id("<|eot_id|>"), id("<|end_of_text|>"), id("<|end|>")));
  EXPECT_THAT(stop_tokens(ChatFormat::deepseek_coder, tokenizer), ElementsAre(id("<|EOT|>"), id("<|end|>")));
  EXPECT_THAT(stop_tokens(ChatFormat::mistral, tokenizer), ElementsAre(id("<|end|>")));
}

TEST(ChatFormatTest, NamesGoBothWays) {
  for (const ChatFormat format : kFormats) EXPECT_EQ(parse_chat_format(to_string(format)), format);
  EXPECT_EQ(parse_chat_format("jinja"), std::nullopt);
}

struct Template {
  const char* name;
  const char* text;  ///< what tells this model's template from others
  std::optional<ChatFormat> format;
  const char* error = "";
};

class ChatRecognitionTest : public ::testing::TestWithParam<Template> {};

TEST_P(ChatRecognitionTest, ByItsMarkers) {
  const auto format = recognise_chat_format(GetParam().text);
  if (GetParam().format) {
    ASSERT_TRUE(format) << format.error();
    EXPECT_EQ(*format, *GetParam().format);
  } else {
    ASSERT_FALSE(format);
    EXPECT_THAT(format.error(), AllOf(HasSubstr(GetParam().error), HasSubstr("choose one of: chatml, llama2, llama3")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ChatRecognitionTest,
    ::testing::Values(
        Template{"Llama2", "{{ '<<SYS>>\\n' }}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}", ChatFormat::llama2},
        Template{"Llama3", "{% set content = '<|start_header_id|>' + role + '<|end_header_id|>' %}{{ '<|eot_id|>' }}", ChatFormat::llama3},
        Template{"Mistral7BV1", "{{ bos_token }}{{ ' [INST] ' + message['content'] + ' [/INST]' }}", ChatFormat::mistral},
        Template{"Mistral7BV3", "{{ \"[AVAILABLE_TOOLS] [\" }}{{ \"[INST] \" + message[\"content\"] + \"[/INST]\" }}", ChatFormat::mistral},
        Template{"DeepseekCoder", "{{'### Instruction:\\n' + x + '\\n'}}{{'### Response:\\n' + x + '\\n<|EOT|>\\n'}}", ChatFormat::deepseek_coder},
        Template{"Qwen3", "{{- '<|im_start|>' + message.role + '\\n<think>\\n' }}{{- '<|im_end|>\\n' }}", ChatFormat::chatml},
        Template{"TinyLlama", "{{ '<|user|>\\n' + message['content'] + eos_token }}{{ '<|assistant|>' }}", std::nullopt, "'<|user|>', a marker of Zephyr, TinyLlama"},
        Template{"DeepseekV3", "{{'<｜User｜>' + message['content']}}", std::nullopt, "a marker of DeepSeek-V2.5, V3 and R1"},
        Template{"Gemma", "{{ '<start_of_turn>' + role }}", std::nullopt, "Gemma"},
        Template{"Phi4", "{{'<|im_start|>user<|im_sep|>' + x + '<|im_end|>'}}", std::nullopt, "Phi-4"},
        Template{"MistralSmall3", "{{ '[SYSTEM_PROMPT]' + x + '[/SYSTEM_PROMPT]' }}{{ '[INST]' + x + '[/INST]' }}", std::nullopt, "Mistral with system turns"},
        Template{"Alpaca", "### Instruction:\n{{ x }}\n### Response:\n", std::nullopt, "Alpaca"},
        Template{"Unheard", "{{ x }}", std::nullopt, "of no format that is known"}, Template{"Empty", "", std::nullopt, "of no format"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(ChatRecognitionTest, TemplatesOfRealFiles) {
  const std::filesystem::path folder = std::filesystem::path(FIXPOINT_BENCHMARK_DATA) / "chat-templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const auto recognise = [&](const char* name) {
    std::ifstream file(folder / name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return recognise_chat_format(std::string(std::istreambuf_iterator<char>(file), {}));
  };
  EXPECT_EQ(recognise("Qwen-Qwen2.5-7B-Instruct.jinja"), ChatFormat::chatml);
  EXPECT_EQ(recognise("meta-llama-Llama-3.1-8B-Instruct.jinja"), ChatFormat::llama3);
  EXPECT_EQ(recognise("mistralai-Mistral-Nemo-Instruct-2407.jinja"), ChatFormat::mistral);
  const auto distilled = recognise("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja");
  ASSERT_FALSE(distilled);
  EXPECT_THAT(distilled.error(), HasSubstr("<｜User｜>"));
}

}  // namespace
}  // namespace fixpoint::engine
