#include "agent/prompt.h"

#include <gtest/gtest.h>

namespace fixpoint::agent {
namespace {

TEST(PromptTest, TheFirstMessageIsTheStatementTheFirstTestsAndTheFormOfTheAnswer) {
  Task task{.statement = "Write `task(xs)`. Sort the numbers.\n", .entry_point = "task"};
  task.visible = {{Assertion{"assert task([5, 1]) == [5, 1]"}}, {Assertion{"assert task([]) == []"}}};
  task.shown_tests = 1;
  EXPECT_EQ(task_message(task),
            "Write `task(xs)`. Sort the numbers.\n"
            "assert task([5, 1]) == [5, 1]\n"
            "Answer with one fenced Python program.");
}

TEST(PromptTest, InputAndOutputContextAndLanguage) {
  Task task{.statement = "Add the numbers.", .language = "cpp"};
  task.context = {{"data.txt", "1 2"}};
  task.visible = {{StdioCase{"1 2\n", "3\n"}}};
  EXPECT_EQ(task_message(task),
            "Add the numbers.\n`data.txt`:\n```\n1 2\n```\nInput:\n```\n1 2\n```\nOutput:\n```\n3\n```\n"
            "Answer with one fenced C++ program.");
}

TEST(PromptTest, DoctestsAreNotShownTwiceAndHiddenTestsNever) {
  Task task{.statement = "S"};
  task.visible = {{Assertion{"assert f(1) == 2"}, TestOrigin::doctest}};
  task.hidden = {{Assertion{"assert f(2) == 3"}}};
  EXPECT_EQ(task_message(task), "S\nAnswer with one fenced Python program.");
}

Round failed() {
  Round round;
  round.program = "def f(x):\n    return x\n";
  round.judgement = Judgement{.status = CheckStatus::wrong_answer, .passed = 0, .total = 1};
  round.judgement->failures = {{.test = "assert f(1) == 2", .actual = "1"}};
  round.judgement->trace = {{1, "def f(x):", "x = 1"}, {2, "return x", "returns 1"}};
  return round;
}

TEST(PromptTest, EachFeedbackKindAddsItsPart) {
  const std::string end = "Answer with the corrected program.";
  EXPECT_EQ(feedback_message(failed(), *parse_feedback("simple"), "", Writer::explainer), "The tests failed.\n" + end);
  EXPECT_EQ(feedback_message(failed(), *parse_feedback("unit_test"), "", Writer::explainer),
            "The tests failed.\nassert f(1) == 2\ngot 1\n" + end);
  Round told = failed();
  told.judgement->failures[0].difference = "got is 1 too small";
  EXPECT_EQ(feedback_message(told, *parse_feedback("unit_test"), "", Writer::explainer),
            "The tests failed.\nassert f(1) == 2\ngot 1\ndifference: got is 1 too small\n" + end);
  EXPECT_EQ(feedback_message(failed(), *parse_feedback("trace"), "", Writer::explainer),
            "The tests failed.\ntrace:\ndef f(x):  # x = 1\nreturn x  # returns 1\n" + end);
  EXPECT_EQ(feedback_message(failed(), *parse_feedback("simple+explanation"), "", Writer::explainer),
            "The tests failed.\nExplain what is wrong, then answer with the corrected program.");
  EXPECT_FALSE(parse_feedback("unit_test+gossip").has_value());
  EXPECT_EQ(to_string(*parse_feedback("trace+unit_test")), "unit_test+trace");
}

TEST(PromptTest, ErrorsAndAdvice) {
  Round round = failed();
  round.judgement->failures = {{.test = "assert f(1) == 2", .error = "KeyError: 'a' in line 2: return d['a']"}};
  round.judgement->trace.clear();
  EXPECT_EQ(feedback_message(round, {}, "Use get.\n", Writer::person),
            "The tests failed.\nassert f(1) == 2\nraised KeyError: 'a' in line 2: return d['a']\nHint: Use get.\n"
            "Explain what is wrong, then answer with the corrected program.");
  round.judgement = Judgement{.status = CheckStatus::compile_error, .message = "main.cpp:1:1: error: x\n"};
  EXPECT_TRUE(feedback_message(round, {}, "Read it.", Writer::explainer)
                  .starts_with("The program does not compile.\nmain.cpp:1:1: error: x\nA reviewer says: Read it.\n"));
}

TEST(PromptTest, QuotedTextIsBoundedAtCharacters) {
  EXPECT_EQ(bounded("short", 10), "short");
  EXPECT_EQ(bounded("abcdefghijklmnop", 9), "abcdef... 7 bytes left out ...nop");
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xE2\x82\xAC";
  for (std::size_t limit = 0; limit < 40; ++limit) {
    const std::string text = bounded(euros, limit);
    EXPECT_EQ(text.find("\xE2\x82\xE2"), std::string::npos);
    EXPECT_LE(text.size(), limit + 40);
  }
  Round round = failed();
  round.judgement->failures[0].actual = std::string(1'000'000, 'x');
  round.judgement->message = std::string(1'000'000, 'x');
  EXPECT_LT(feedback_message(round, {}, std::string(1'000'000, 'x'), Writer::person).size(), 10'000U);
}

TEST(PromptTest, AReviewAcceptsOnlyWhereItSaysSo) {
  EXPECT_TRUE(review_accepts("It sorts the list, as asked.\nCORRECT\n"));
  EXPECT_TRUE(review_accepts("All fine. **CORRECT**."));
  EXPECT_FALSE(review_accepts("It is INCORRECT"));
  EXPECT_FALSE(review_accepts("That is NOT CORRECT."));
  EXPECT_FALSE(review_accepts("CORRECT would be to sort."));
  EXPECT_FALSE(review_accepts(""));
}

TEST(PromptTest, AProgramStartsWithTheFunctionThatTheTaskNames) {
  const auto start = program_start({.entry_point = "top_k"});
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->fence, "```python\n");
  EXPECT_EQ(start->text, "def top_k");
  EXPECT_FALSE(program_start({}).has_value());
  EXPECT_FALSE(program_start({.entry_point = "Solution.solve"}).has_value());
  EXPECT_FALSE(program_start({.language = "cpp", .entry_point = "top_k"}).has_value());
}

TEST(PromptTest, TheHashTellsMessagesApart) {
  const std::vector<Message> one{{Role::user, "ab"}, {Role::assistant, "c"}};
  EXPECT_EQ(prompt_sha256(one).size(), 64U);
  EXPECT_NE(prompt_sha256(one), prompt_sha256({{Role::user, "a"}, {Role::assistant, "bc"}}));
  EXPECT_NE(prompt_sha256(one), prompt_sha256({{Role::user, "ab"}, {Role::user, "c"}}));
}

}  // namespace
}  // namespace fixpoint::agent
