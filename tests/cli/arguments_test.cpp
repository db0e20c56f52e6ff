#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace fixpoint::cli_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

using ArgumentsTest = ProgramTest;

/// A results file of `fixpoint eval` whose task number i was solved where passed[i] is '+'.
std::string results_of(const std::string& passed) {
  using nlohmann::json;
  json run{{"data_tasks", passed.size()}, {"programs", passed.size()}, {"seed", 1}, {"budget", json::object()}};
  for (const char* name : {"benchmark", "data_file", "data_sha256", "data_status", "prompt_id", "source", "source_name", "source_sha256", "selection", "version",
                           "commit", "machine", "sandbox", "started"}) {
    run[name] = "x";
  }
  json header = json::object();
  header["run"] = run;
  std::string lines = header.dump() + "\n";
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const json judgement{{"outcome", passed[i] == '+' ? "passed" : "wrong_answer"}, {"tests", 1}, {"tests_passed", passed[i] == '+' ? 1 : 0},
                         {"level", "separate_tests"}, {"cpu_us", 0}, {"wall_us", 0}};
    const std::string number = std::to_string(i);
    lines += json{{"key", "k" + number}, {"task", "T/" + number}, {"index", i}, {"sample", 0}, {"judgement", judgement}, {"program", ""}, {"wall_seconds", 0.1}}.dump() + "\n";
  }
  return lines;
}

TEST_F(ArgumentsTest, AWordThatIsNoCommandIsNamedBesideTheCommands) {
  const Ran typo = run({"generat"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.err, AllOf(HasSubstr("'generat'"), HasSubstr("\n  generate "), HasSubstr("\n  solve ")));
  const Ran option = run({"--bogus"});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, AllOf(HasSubstr("'--bogus'"), HasSubstr("\n  generate ")));
  const Ran bare = run({});
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.err, AllOf(HasSubstr("no command"), HasSubstr("\n  generate ")));
  const Ran inner = run({"model", "inf"});
  EXPECT_EQ(inner.code, 2);
  EXPECT_THAT(inner.err, AllOf(HasSubstr("'inf'"), HasSubstr("\n  info ")));
}

TEST_F(ArgumentsTest, HelpTellsExitCodesExamplesAndTheDocumentation) {
  const Ran top = run({"--help"});
  EXPECT_EQ(top.code, 0);
  EXPECT_THAT(top.out, AllOf(HasSubstr("Exit codes"), HasSubstr("fixpoint generate -m"), HasSubstr("docs/cli.md")));
  for (const Words& command : {Words{"generate"}, {"model", "info"}, {"bench"}}) {
    Words words = command;
    words.push_back("--help");
    const Ran help = run(words);
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Exit codes")) << command.back();
  }
}

struct Wrong {
  Words words;       ///< a command line, or what stands behind the command and the model
  std::string name;  ///< the option's, or more of what the error must say
};

TEST_F(ArgumentsTest, AValueThatAnOptionDoesNotTakeIsWrongUsageOfThatOption) {
  const std::vector<Wrong> all{{{"--top-p", "2"}, "--top-p"},          {{"--top-p", "0"}, "--top-p"},
                               {{"--min-p", "9"}, "--min-p"},          {{"--top-k", "-5"}, "--top-k"},
                               {{"--temp", "nan"}, "--temp"},          {{"--temp", "-1"}, "--temp"},
                               {{"--repeat-penalty", "0"}, "--repeat-penalty"},
                               {{"--seed", "-1"}, "--seed"},           {{"--seed", "18446744073709551616"}, "--seed"},
                               {{"--seed", "7x"}, "--seed"},           {{"--stop", ""}, "--stop"},
                               {{"--system", "Be brief"}, "--system"}, {{"--chat-template", "foo"}, "--chat-template"},
                               {{"--kv-memory", "abc"}, "--kv-memory"}, {{"--kv-memory", "nan"}, "--kv-memory"},
                               {{"--kv-memory", "inf"}, "--kv-memory"}, {{"--kv-memory", "1e30"}, "--kv-memory"},
                               {{"--device", "abacus"}, "--device"},   {{"--device", "cuda:"}, "--device"},
                               {{"--device", "cuda:-1"}, "--device"},  {{"--device", "cuda:1x"}, "--device"},
                               {{"--device", "cuda:99999999999"}, "--device"},
                               {{"--gpu-memory-utilization", "0"}, "--gpu-memory-utilization"},
                               {{"--gpu-memory-utilization", "1.1"}, "--gpu-memory-utilization"},
                               {{"--gpu-products", "slow"}, "--gpu-products"}, {{"--bogus"}, "--bogus"},
                               {{"-n", "0"}, "--max-tokens"}};
  for (const Wrong& wrong : all) {
    Words words{"generate", "-m", model(), "-p", "x"};
    words.insert(words.end(), wrong.words.begin(), wrong.words.end());
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2) << wrong.words.front() << " " << wrong.words.back();
    EXPECT_THAT(ran.err, HasSubstr(wrong.name)) << wrong.words.back();
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(ArgumentsTest, TimesCountsAndAddressesOutOfRangeAreWrongUsageBeforeAnythingIsLoaded) {
  const std::string absent = file("absent").string();
  const std::vector<Wrong> all{{{"solve", absent, "--timeout", "nan"}, "--timeout: 'nan' is no number in (0, 1000000000]"},
                               {{"solve", absent, "--timeout", "0"}, "--timeout"},
                               {{"solve", absent, "--timeout", "1e300"}, "--timeout"},
                               {{"solve", absent, "--max-tokens", "0"}, "--max-tokens: '0' is no whole number from 1 to 1000000000"},
                               {{"solve", absent, "--threads", "-3"}, "--threads"},
                               {{"solve", absent, "--threads", "99999"}, "--threads"},
                               {{"solve", absent, "--webhook", "example.org"}, "--webhook"},
                               {{"serve", "--head-timeout", "nan"}, "--head-timeout"},
                               {{"serve", "--drain-timeout", "-1"}, "--drain-timeout"},
                               {{"sandbox", "run", "--lang", "python", absent, "--memory", "zz"}, "--memory"},
                               {{"sandbox", "run", "--lang", "klingon", absent}, "--lang: unknown language 'klingon'; known are python, c, cpp"},
                               {{"sandbox", "run", absent}, "--lang: missing"},
                               {{"sandbox", "run", absent, "--memory", "1000000000"}, "--memory: '1000000000' is no whole number from 1 to 1048576"},
                               {{"sandbox", "run", absent, "--files", "1000000000"}, "--files"},
                               {{"sandbox", "run", absent, "--processes", "1000000000"}, "--processes"},
                               {{"sandbox", "run", absent, "--without", "luck"}, "unknown protection 'luck'; known are user_namespace"},
                               {{"sandbox", "run", "-l", "py", "-", "--stdin", "-"}, "--stdin"},
                               {{"solve", absent, "--chat-template", "foo"}, "--chat-template"},
                               {{"solve", absent, "--device", "abacus"}, "--device"},
                               {{"escalations", "hint", "e1", " "}, "TEXT"},
                               {{"escalations", "decline", "e1", ""}, "REASON"}};
  for (const Wrong& wrong : all) {
    const Ran ran = run(wrong.words);
    EXPECT_EQ(ran.code, 2) << wrong.words.front() << " " << wrong.words.back();
    EXPECT_THAT(ran.err, HasSubstr(wrong.name)) << wrong.words.back();
  }
}

TEST_F(ArgumentsTest, UnexpectedArgumentsAreNamedInTheirOrder) {
  const Ran ran = run({"solve", "task.md", "more", "--temprature", "1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("not expected: more --temprature 1\n"));
}

TEST_F(ArgumentsTest, TheWordHelpDoesWhatTheOptionDoes) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  const Ran solve = run({"help", "solve"});
  EXPECT_EQ(solve.code, 0);
  EXPECT_EQ(solve.out, run({"solve", "--help"}).out);
}

TEST_F(ArgumentsTest, AModelAndAScriptExcludeEachOther) {
  const std::string absent = file("absent").string();
  write(file("config.json"), R"({"script": "answers.json"})");
  for (const Words& words : {Words{"solve", absent, "-m", absent, "--script", absent}, {"sessions", "resume", "s1", "-m", absent, "--script", absent},
                             {"serve", "-m", absent, "--config", file("config.json").string()}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2) << words.front();
    EXPECT_THAT(ran.err, AllOf(HasSubstr("--script"), HasSubstr("--model"))) << words.front();
  }
}

TEST_F(ArgumentsTest, ATaskThatIsNoTextIsRefusedWithItsNameAndTheOffset) {
  const std::string task = file("task.md").string();
  write(task, std::string("Write\0add", 9));
  const Ran zero = run({"solve", task, "-m", file("absent").string()});
  EXPECT_EQ(zero.code, 2);
  EXPECT_THAT(zero.err, AllOf(HasSubstr("'" + task + "'"), HasSubstr("offset 5"), HasSubstr("zero")));
  write(task, "\xc3\xa9t\xe9");
  const Ran latin = run({"solve", task, "-m", file("absent").string()});
  EXPECT_EQ(latin.code, 2);
  EXPECT_THAT(latin.err, AllOf(HasSubstr("'" + task + "'"), HasSubstr("offset 3"), HasSubstr("UTF-8")));
}

TEST_F(ArgumentsTest, AConfigurationThatIsNoJsonIsWrongUsageWithTheFilesName) {
  const std::string config = file("config.json").string();
  for (const char* text : {"{", R"({"rounds": 1e999})", R"({"rouds": 1})"}) {
    write(config, text);
    const Ran ran = run({"serve", "--config", config});
    EXPECT_EQ(ran.code, 2) << text;
    EXPECT_THAT(ran.err, HasSubstr(config)) << text;
  }
}

TEST_F(ArgumentsTest, WhatAServerCanNotDoIsSaidBeforeAModelIsLoaded) {
  const std::string absent = file("absent").string();
  const std::vector<Wrong> all{{{"--listen", "nonsense"}, "'nonsense'"},  {{"--listen", "127.0.0.1:65536"}, "65535"},
                               {{"--listen", "0.0.0.0:0"}, "--tokens"},    {{"--tokens", absent}, "'" + absent + "': No such file"},
                               {{"--tls-cert", absent}, "--tls-key"},      {{"--tls-cert", absent, "--tls-key", absent}, "--tls-cert"}};
  for (const Wrong& wrong : all) {
    Words words{"serve", "-m", file("absent.gguf").string(), "--journal", file("journal.db").string()};
    words.insert(words.end(), wrong.words.begin(), wrong.words.end());
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2) << wrong.words.front() << " " << wrong.words.back();
    EXPECT_THAT(ran.err, HasSubstr(wrong.name)) << wrong.words.back();
  }
}

TEST_F(ArgumentsTest, ATokenThatCouldNotBeReadAgainIsNotMade) {
  const std::string tokens = file("tokens.json").string();
  for (const Words& limit : {Words{"--sessions", "-5"}, {"--connections", "-1"}, {"--tokens-per-minute", "2000000000"}}) {
    const Ran ran = run({"token", "new", "--file", tokens, "--id", "a", limit[0], limit[1]});
    EXPECT_EQ(ran.code, 2) << limit[0];
    EXPECT_THAT(ran.err, HasSubstr(limit[0]));
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(run({"token", "new", "--file", tokens, "--id", "a\nb"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(tokens));
  EXPECT_EQ(run({"token", "new", "--file", tokens, "--id", "a"}).code, 0);
  EXPECT_EQ(run({"token", "new", "--file", tokens, "--id", "b", "--sessions", "0"}).code, 0);
}

TEST_F(ArgumentsTest, ComparedRunsFailWhereTheSecondLosesMoreThanTheGate) {
  const std::string a = file("a.jsonl").string(), b = file("b.jsonl").string();
  write(a, results_of("++++++++--"));
  write(b, results_of("++++++--+-"));  // loses two of ten, and gains one
  EXPECT_EQ(run({"eval", "compare", a, b}).code, 0);
  EXPECT_EQ(run({"eval", "compare", a, b, "--gate", "10"}).code, 0);
  EXPECT_EQ(run({"eval", "compare", b, a, "--gate", "0"}).code, 0) << "it gains";
  const Ran lost = run({"eval", "compare", a, b, "--gate", "0.5", "--json"});
  EXPECT_EQ(lost.code, 1);
  EXPECT_THAT(lost.err, AllOf(HasSubstr("10 points"), HasSubstr("gate of 0.5")));
  EXPECT_EQ(lost.json()["points_lost"], 10.0);
  EXPECT_EQ(run({"eval", "compare", a, b, "--gate", "-1"}).code, 2);
  const std::string whole = results_of("++++++++++");
  write(b, whole.substr(0, whole.find("\"T/5\"")));  // was killed while it wrote its sixth record: nothing is lost so far
  EXPECT_EQ(run({"eval", "compare", a, b}).code, 0);
  const Ran stopped = run({"eval", "compare", a, b, "--gate", "10"});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("whole runs"));
}

TEST_F(ArgumentsTest, AMissingModelOrPromptIsWrongUsage) {
  EXPECT_EQ(run({"generate", "-p", "x"}).code, 2);
  EXPECT_EQ(run({"generate", "-m", model()}).code, 2);
  EXPECT_EQ(run({"model", "info"}).code, 2);
}

TEST_F(ArgumentsTest, AFileThatCannotBeReadIsNamed) {
  const std::string folder = file("folder").string();
  std::filesystem::create_directory(folder);
  for (const std::string& prompt : {folder, file("absent").string()}) {
    const Ran ran = with_model({"generate", "-f", prompt});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("'" + prompt + "'"));
  }
  const Ran program = run({"sandbox", "run", "--lang", "python", folder});
  EXPECT_EQ(program.code, 2);
  EXPECT_THAT(program.err, HasSubstr("'" + folder + "'"));
  const Ran absent = run({"model", "info", file("absent.gguf").string()});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, HasSubstr("absent.gguf"));
}

TEST_F(ArgumentsTest, OutputThatCannotBeWrittenIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "the system has no /dev/full";
  for (const Words& words : {Words{"generate", "-p", "x", "-n", "4"}, {"generate", "-p", "x", "-n", "4", "--json"}, {"tokenize", "x"}}) {
    const Ran ran = words.front() == "generate" ? with_model(words, "/dev/full") : run({"tokenize", "-m", model(), "x"}, "/dev/full");
    EXPECT_EQ(ran.code, 1) << words.front() << words.back();
    EXPECT_THAT(ran.err, HasSubstr("standard output")) << words.front() << words.back();
  }
  EXPECT_EQ(run({"--help"}, "/dev/full").code, 1);
}

TEST_F(ArgumentsTest, AKvBudgetBeyondTheMemoryThereIsIsRefusedWithBothFigures) {
  const std::string path = file("long.gguf").string();
  test_models::write_random_model(path, {.context = 1 << 29});
  const Ran ran = run({"generate", "-m", path, "-p", "x", "--threads", "1", "--kv-memory", "4T"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--kv-memory"), ::testing::ContainsRegex("[0-9]+ bytes, but only [0-9]+ are available")));
}

// Whatever this machine has: a program without CUDA, no device, or fewer than that.
TEST_F(ArgumentsTest, ADeviceThatIsNotThereIsRefusedWithTheReasonAndAutoDoesWithoutOne) {
  const Ran absent = with_model({"generate", "-p", "x", "-n", "1", "--device", "cuda:99"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, ::testing::ContainsRegex("--device cuda:99: ."));
  EXPECT_EQ(absent.out, "");
  const Ran any = with_model({"generate", "-p", "x", "-n", "1", "--device", "auto"});
  EXPECT_EQ(any.code, 0) << any.err;
}

TEST_F(ArgumentsTest, BenchNamesTheOptionThatAsksForTooMuchOrTooLittle) {
  EXPECT_EQ(run({"bench", "-m", model(), "--decode", "1"}).code, 2);
  const Ran bench = with_model({"bench", "--prefill", "8192"});
  EXPECT_EQ(bench.code, 2);
  EXPECT_THAT(bench.err, AllOf(HasSubstr("--prefill"), HasSubstr("8193"), HasSubstr("512")));
}

using SandboxCommandTest = ProgramTest;

TEST_F(SandboxCommandTest, VerdictsAreJsonWithEveryField) {
  write(file("exit.py"), "import sys\nsys.stdout.buffer.write(b'a\\xff')\nsys.exit(3)\n");
  const Ran ended = run({"sandbox", "run", "--lang", "python", file("exit.py"), "--json"});
  EXPECT_EQ(ended.code, 10) << ended.err;
  const nlohmann::json verdict = ended.json();
  EXPECT_EQ(verdict.at("verdict"), "exit_nonzero");
  EXPECT_EQ(verdict.at("exit_code"), 3);
  EXPECT_TRUE(verdict.at("signal").is_null() && verdict.at("syscall").is_null());
  EXPECT_EQ(verdict.at("stdout"), "a\xef\xbf\xbd");  // what is not UTF-8 is replaced, and the next field says so
  EXPECT_EQ(verdict.at("stdout_replaced"), true);
  EXPECT_EQ(verdict.at("stderr_replaced"), false);
  EXPECT_EQ(verdict.at("stdout_truncated"), false);
  EXPECT_EQ(verdict.at("stderr_truncated"), false);
  EXPECT_EQ(verdict.at("oom_kills"), 0);
  for (const char* number : {"wall_ms", "cpu_ms", "peak_memory_bytes"}) EXPECT_GT(verdict.at(number).get<double>(), 0) << number;
  EXPECT_GT(verdict.at("protections").at("active").size(), 8U);
  EXPECT_TRUE(verdict.at("protections").at("missing").is_array());

  write(file("denied.py"), "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)\n");
  const nlohmann::json denied = run({"sandbox", "run", "--lang", "python", file("denied.py"), "--json"}).json();
  EXPECT_EQ(denied.at("verdict"), "syscall_denied");
  EXPECT_TRUE(denied.at("exit_code").is_null());
}

TEST_F(SandboxCommandTest, InputLimitsAndExitCodesAreTheOnesAskedFor) {
  write(file("echo.sh"), "read word\necho \"$word $1\"\n");
  write(file("input"), "hello\n");
  const Ran echoed = run({"sandbox", "run", "--lang", "bash", file("echo.sh"), "there", "--stdin", file("input")});
  EXPECT_EQ(echoed.code, 0) << echoed.err;
  EXPECT_EQ(echoed.out, "hello there\n");
  write(file("flood.sh"), "while true; do echo 0123456789; done\n");
  const Ran flood = run({"sandbox", "run", "--lang", "bash", file("flood.sh"), "--output", "010", "--json"});
  EXPECT_EQ(flood.code, 10);
  EXPECT_EQ(flood.json().at("verdict"), "output_limit");
  EXPECT_EQ(flood.json().at("stdout").get<std::string>().size(), 10 * 1024U);
  EXPECT_EQ(flood.json().at("stdout_truncated"), true);
  EXPECT_EQ(run({"sandbox", "run", file("echo.sh"), "there", "--stdin", file("input")}).out, "hello there\n");
  EXPECT_EQ(run({"sandbox", "run", "--lang", "Shell", file("echo.sh"), "there", "--stdin", file("input")}).out, "hello there\n");
  EXPECT_EQ(run({"sandbox", "run", "--lang", "cobol", file("echo.sh")}).code, 2);
  EXPECT_EQ(run({"sandbox", "run", "--lang", "bash", file("echo.sh"), "--without", "luck"}).code, 2);
}

TEST_F(SandboxCommandTest, DoctorProvesEachProtection) {
  const Ran told = run({"doctor", "--json"});
  const nlohmann::json report = told.json();
  bool all = true;
  for (const nlohmann::json& protection : report.at("protections")) {
    EXPECT_FALSE(protection.at("proof").get<std::string>().empty()) << protection;
    all = all && protection.at("active").get<bool>();
  }
  EXPECT_GT(report.at("protections").size(), 15U);
  EXPECT_EQ(report.at("languages").size(), 8U);
  EXPECT_EQ(told.code, all ? 0 : 1);
}

}  // namespace
}  // namespace fixpoint::cli_tests
