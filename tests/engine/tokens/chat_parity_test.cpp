// Prompts against those of the original templates: each rendered by a Jinja engine and tokenised by the original
// tokenizer, special tokens parsed (goldens/make_chat_goldens.mjs).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/chat_template.h"
#include "tests/engine/tokens/reference_vocabulary.h"

namespace fixpoint::engine {
namespace {

namespace fs = std::filesystem;

std::vector<std::vector<Message>> read_conversations() {
  std::vector<std::vector<Message>> out;
  const auto file = fs::path(FIXPOINT_TOKENIZER_GOLDENS) / "conversations.json";
  for (const auto& conversation : nlohmann::json::parse(testing::file_contents(file))) {
    auto& messages = out.emplace_back();
    for (const auto& [role, content] : conversation.get<std::vector<std::pair<std::string, std::string>>>()) {
      messages.push_back({role == "system" ? Role::system : role == "user" ? Role::user : Role::assistant, content});
    }
  }
  return out;
}

struct Case {
  const char* golden;
  const char* vocabulary;
  ChatFormat format;
};

class ChatParityTest : public ::testing::TestWithParam<Case> {};

TEST_P(ChatParityTest, PromptsEqualThoseOfTheOriginalTemplate) {
  const auto tokenizer = testing::reference_tokenizer(GetParam().vocabulary);
  if (!tokenizer) GTEST_SKIP() << tokenizer.error();
  const auto conversations = read_conversations();
  const auto ids = testing::read_ids(fs::path(FIXPOINT_TOKENIZER_GOLDENS) / (std::string("chat-") + GetParam().golden + ".ids"));
  ASSERT_GE(conversations.size(), 6U);
  ASSERT_EQ(conversations.size(), ids.size());
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    const auto prompt = render_chat(GetParam().format, *tokenizer, conversations[i]);
    ASSERT_TRUE(prompt) << prompt.error();
    EXPECT_EQ(*prompt, ids[i]) << "conversation " << i << ": " << tokenizer->decode(*prompt, true) << "\n instead of "
                               << tokenizer->decode(ids[i], true);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ChatParityTest,
                         ::testing::Values(Case{"qwen2.5", "qwen3", ChatFormat::chatml},
                                           Case{"qwen3", "qwen3", ChatFormat::chatml},
                                           Case{"llama3", "llama3", ChatFormat::llama3},
                                           Case{"llama2", "llama-spm", ChatFormat::llama2},
                                           Case{"mistral", "mistral", ChatFormat::mistral},
                                           Case{"deepseek-coder", "deepseek-coder", ChatFormat::deepseek_coder}),
                         [](const auto& each) {
                           std::string name = each.param.golden;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace fixpoint::engine
