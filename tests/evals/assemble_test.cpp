#include "evals/assemble.h"

#include <gtest/gtest.h>

namespace fixpoint::evals {
namespace {

Task cpp_task() {
  Task task;
  task.language = "cpp";
  task.prompt = "#include<vector>\nint f(int a) {\n";
  task.assembly = Assembly::cut_at_stop;
  task.stop_tokens = {"\n}"};
  task.hidden = ProgramTail{"}\nint main() {\n  assert(f(1) == 1);\n}\n"};
  return task;
}

TEST(AssembleTest, ACompletionFollowsThePromptAndEndsAtItsStopToken) {
  const Task task = cpp_task();
  const Program program = assemble(task, {0, 0, "  return a;\n}\nint main() { return 0; }\n", Sample::Form::completion});
  EXPECT_FALSE(program.closed);
  EXPECT_EQ(with_tail(program, std::get<ProgramTail>(task.hidden).source),
            "#include<vector>\nint f(int a) {\n  return a;\n}\nint main() {\n  assert(f(1) == 1);\n}\n");
}

TEST(AssembleTest, AChatAnswerLosesItsMainAndIsNotClosedTwice) {
  const Task task = cpp_task();
  const std::string answer =
      "Sure:\n```cpp\n#include <vector>\n// int main() {\nint f(int a) {\n  return a; // '}'\n}\n\nint main() {\n  if (f(1)) { return '}'; }\n  return 0;\n}\n```\nBye.";
  const Program program = assemble(task, {0, 0, answer, Sample::Form::chat_answer});
  EXPECT_TRUE(program.closed);
  EXPECT_EQ(with_tail(program, std::get<ProgramTail>(task.hidden).source),
            "#include <vector>\n// int main() {\nint f(int a) {\n  return a; // '}'\n}\n\n\n\n\nint main() {\n  assert(f(1) == 1);\n}\n");
}

TEST(AssembleTest, MainIsFoundAsAWordOutsideLiterals) {
  EXPECT_EQ(without_main("int domain() { return 1; }\nconst char* s = \"int main() {\";\n", "cpp"),
            "int domain() { return 1; }\nconst char* s = \"int main() {\";\n");
  EXPECT_EQ(without_main("a\nint main(int c, char** v)\n{\n  { }\n}\nb", "cpp"), "a\n\nb");
  EXPECT_EQ(without_main("int main() { {", "cpp"), "int main() { {");
}

TEST(AssembleTest, AJavaAnswerLosesTheBraceOfItsClass) {
  Task task = cpp_task();
  task.language = "java";
  const Program program = assemble_answer(task, "class Problem {\n  static int f() { return 1; }\n  public static void main(String[] a) { }\n}\n");
  EXPECT_EQ(with_tail(program, "    }\n    public static void main(String[] args) {\n    }\n}\n"),
            "class Problem {\n  static int f() { return 1; }\n\n\n\n    public static void main(String[] args) {\n    }\n}\n");
}

TEST(AssembleTest, HumanEvalCompletionsAndSolutionsKeepTheirBytes) {
  Task task;
  task.language = "python";
  task.prompt = "import math\ndef f():\n    '''doc'''\n";
  task.assembly = Assembly::prompt_first;
  EXPECT_EQ(assemble(task, {0, 0, "    return 1\n", Sample::Form::completion}).source, "import math\ndef f():\n    '''doc'''\n    return 1\n");
  EXPECT_EQ(assemble(task, {0, 0, "def f(): pass\n", Sample::Form::solution}).source, "def f(): pass\n");
  EXPECT_EQ(assemble_answer(task, "def f(): return 2").source, "import math\ndef f():\n    '''doc'''\n\n\ndef f(): return 2");
}

TEST(AssembleTest, FirstFenceOfAnAnswer) {
  EXPECT_EQ(first_fence("a\n```js\nx\ny\n```\nb\n```js\nz\n```"), "x\ny\n");
  EXPECT_EQ(first_fence("```\nx"), "x");
  EXPECT_EQ(first_fence("x"), "x");
}

TEST(AssembleTest, TheEarliestStopTokenCuts) {
  EXPECT_EQ(cut_at_stop("ab\ncd\nef", {"\nef", "\ncd", ""}), "ab");
  EXPECT_EQ(cut_at_stop("ab", {"x"}), "ab");
}

}  // namespace
}  // namespace fixpoint::evals
