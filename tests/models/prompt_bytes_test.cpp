// The embedded model is trained on the bytes that the loop sends: the recipe's words against those of a real session.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/difference.h"
#include "agent/loop.h"
#include "agent/sandbox_checker.h"
#include "sandbox/sandbox.h"

namespace fixpoint::agent {
namespace {

using nlohmann::json;

/// Gives the answers in turn and keeps what it was asked.
class RecordingGenerator : public Generator {
 public:
  explicit RecordingGenerator(std::vector<std::string> answers) : answers_(std::move(answers)) {}
  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText&, std::stop_token) override {
    asked.push_back(request.messages);
    if (asked.size() > answers_.size()) return tl::unexpected(GenerateError{.kind = GenerateError::Kind::exhausted});
    return Generation{.text = answers_[asked.size() - 1]};
  }
  std::string name() const override { return "recording"; }

  std::vector<std::vector<Message>> asked;

 private:
  std::vector<std::string> answers_;
};

/// The JSON lines that a script beside this file prints for "COUNT SEED".
std::vector<json> rows_of(const std::string& script, int count) {
  const std::string command = std::string(FIXPOINT_PYTHON " -B '" FIXPOINT_TEST_SCRIPTS "/") + script + "' " + std::to_string(count) + " 5";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  if (::pclose(pipe) != 0) return {};
  std::vector<json> rows;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    rows.push_back(json::parse(text.substr(at, end - at)));
  }
  return rows;
}

TEST(EmbeddedModelPromptTest, TheRecipeTrainsOnTheBytesThatTheLoopSends) {
  auto sandbox = sandbox::Sandbox::start();
  if (!sandbox) GTEST_SKIP() << "no sandbox on this machine: " << sandbox.error().message();
  const auto checker = make_sandbox_checker(*sandbox);
  const std::vector<json> rows = rows_of("write_conversations.py", 40);
  ASSERT_EQ(rows.size(), 40U);
  for (const json& row : rows) {
    const auto task = parse_task_json(row["task"].dump());
    ASSERT_TRUE(task.has_value()) << task.error().message();
    RecordingGenerator generator({row["wrong"], row["right"]});
    Loop loop(Services{.model = &generator, .checker = checker.get()});
    LoopOptions options;
    options.task.rounds = 1;
    const auto result = loop.run(*task, options, {}, [](const Stamped&) {});
    ASSERT_TRUE(result.has_value()) << result.error().detail;
    EXPECT_EQ(result->end.outcome, Outcome::solved) << row["right"];
    ASSERT_EQ(generator.asked.size(), 2U);
    const std::vector<Message>& messages = generator.asked[1];
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[0].content, row["first"].get<std::string>());
    EXPECT_EQ(messages[1].content, row["wrong"].get<std::string>());
    EXPECT_EQ(messages[2].content, row["second"].get<std::string>());
  }
}

TEST(EmbeddedModelPromptTest, TheRecipeTellsOfADifferenceInTheLoopsWords) {
  const std::vector<json> rows = rows_of("write_differences.py", 6000);
  ASSERT_EQ(rows.size(), 6000U);
  std::set<std::string> first_words;
  for (const json& row : rows) {
    const std::string words = row["words"];
    EXPECT_EQ(difference_of_literals(row["expected"].get<std::string>(), row["got"].get<std::string>()), words)
        << "expected " << row["expected"] << ", got " << row["got"];
    first_words.insert(words.substr(0, 12));
  }
  EXPECT_GT(first_words.size(), 15U) << "the values hardly differ in kind";
}

}  // namespace
}  // namespace fixpoint::agent
