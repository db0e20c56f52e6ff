// Given tests in languages whose tests stand below the program and make one program with it (C, C++, Bash, Java, Go, Rust).
#include "sandbox/detail/check/judge.h"
#include "sandbox/detail/drivers/drivers.h"

#include <algorithm>

namespace fixpoint::sandbox::detail {
namespace {

// Asks for a nonce only after the tests' main has returned 0, and gives it back: an early exit(0) leaves it unsaid.
// The linker puts it around main (--wrap), so that main stays main: no return statement is missed, no macro is needed.
constexpr const char* wrapped_main = R"(
#include <unistd.h>
#ifdef __cplusplus
extern "C" {
#endif
int __real_main(int, char**, char**);
int __wrap_main(int argc, char** argv, char** envp) {
  char frame[51 + 1];
  int got = 0;
  int code = __real_main(argc, argv, envp);
  if (code != 0) return code;
  if (write(4, "\x0b\0\0\0t1:s5:ended", 15) != 15) return 97;
  while (got < 51) {
    int n = (int)read(3, frame + got, (size_t)(51 - got));
    if (n <= 0) return 98;
    got += n;
  }
  {
    char reply[4 + 46] = "\x2e\0\0\0t2:s4:dones32:";
    int i;
    for (i = 0; i < 32; ++i) reply[18 + i] = frame[19 + i];
    return write(4, reply, 50) == 50 ? 0 : 99;
  }
}
#ifdef __cplusplus
}
#endif
)";

// The same in Bash, whose `read` drops the zero bytes of the frame's length.
constexpr const char* bash_tail =
    "\nfixpoint_status=$?; if [ $fixpoint_status -ne 0 ]; then exit $fixpoint_status; fi\n"
    "printf '\\x0b\\0\\0\\0t1:s5:ended' >&4\n"
    "IFS= LC_ALL=C read -r -N 48 -u 3 fixpoint_frame\n"
    "printf '\\x2e\\0\\0\\0t2:s4:dones32:%s' \"${fixpoint_frame:16:32}\" >&4\n";

// The program stands above the tests: what it may have done to their words is undone between the two.
constexpr const char* fresh_assert = "\n#undef NDEBUG\n#undef assert\n#undef main\n#include <assert.h>\n";
// In POSIX mode `unset` is found before any function of that name.
constexpr const char* fresh_words =
    "\nPOSIXLY_CORRECT=1\nunset -f unset builtin command exit test [ true false return set eval echo printf read trap local declare\n"
    "unset POSIXLY_CORRECT\nset +o posix\n";
// The constant takes an attribute at the program's end, which would leave the tests out.
constexpr const char* fresh_macros = R"(
const _: () = ();
#[allow(unused_macros)]
macro_rules! assert { ($($all:tt)*) => { ::std::assert!($($all)*) } }
#[allow(unused_macros)]
macro_rules! assert_eq { ($($all:tt)*) => { ::std::assert_eq!($($all)*) } }
#[allow(unused_macros)]
macro_rules! assert_ne { ($($all:tt)*) => { ::std::assert_ne!($($all)*) } }
#[allow(unused_macros)]
macro_rules! panic { ($($all:tt)*) => { ::std::panic!($($all)*) } }
)";
constexpr const char* rust_tail = "\npub fn fixpoint_main() -> impl ::std::process::Termination { main() }\n";

/// In a package of its own, so that it may have a class Main, as the driver has.
std::string in_package(std::string source) {
  const std::size_t at = source.find("package ");
  const bool has_one = at != std::string::npos && (at == 0 || source[at - 1] == '\n');
  return has_one ? source : "package candidate; " + source;
}

/// A public class wants a file of its name; else any will do.
std::string java_file(std::string_view source) {
  constexpr std::string_view words = "public class ";
  const std::size_t at = source.find(words);
  if (at == std::string_view::npos) return "candidate/Candidate.java";
  source.remove_prefix(at + words.size());
  const auto end = std::find_if(source.begin(), source.end(), [](char c) { return !(c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')); });
  const std::string name(source.begin(), end);
  return "candidate/" + (name.empty() || name.size() > 100 ? "Candidate" : name) + ".java";
}

/// The tests' text does not stand where the program runs, which could look its answers up there.
File source_file(std::string path, std::string content) { return {.path = std::move(path), .content = std::move(content), .compile_only = true}; }

/// The job of a program and its tests, which says when the tests have ended; nothing of the kind for other languages.
std::optional<Job> job_with_an_end(const Program& program, const std::string& tests) {
  Job job;
  job.language = program.language;
  switch (program.language) {
    case Language::c:
    case Language::cpp:
      job.source = program.source + fresh_assert + tests;
      job.files.push_back(source_file(program.language == Language::c ? "fixpoint_main.c" : "fixpoint_main.cpp", wrapped_main));
      job.compile_flags = {job.files.back().path, "-Wl,--wrap=main"};
      return job;
    case Language::bash:
      job.source = program.source + fresh_words + tests + bash_tail;
      return job;
    case Language::rust:
      job.source = drivers::rust_driver();
      job.files.push_back(source_file("candidate.rs", program.source + fresh_macros + tests + rust_tail));
      return job;
    case Language::java: {
      const std::string whole = program.source + "\n" + tests;
      job.source = drivers::java_driver();
      job.files.push_back(source_file(java_file(whole), in_package(whole)));
      job.compile_flags = {job.files.back().path};
      return job;
    }
    default: return std::nullopt;
  }
}

std::string hex_nonce() {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : fresh_nonce().text) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

bool is(const tl::expected<Value, Silence>& message, std::size_t size, std::string_view kind) {
  return message && message->kind == Value::Kind::tuple && message->items.size() == size && message->items[0].text == kind;
}

}  // namespace

void Judge::text(const TextCheck& check) {
  const bool blank = check.tests.find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank) {
    result.error = "there is no test";
  } else if (program.language == Language::python || program.language == Language::javascript) {
    driver_tests(check);
  } else {
    appended_tests(check);
  }
}

void Judge::appended_tests(const TextCheck& check) {
  result.level = CheckLevel::in_process;
  if (check.isolation == Isolation::separate) {
    result.error = "tests in " + std::string(sandbox::name(program.language)) + " cannot run apart from the program";
    return;
  }
  std::optional<Job> with_an_end = job_with_an_end(program, check.tests);
  const bool handshake = with_an_end.has_value();
  Job job = handshake ? *std::move(with_an_end) : Job{.language = program.language, .source = program.source + "\n" + check.tests};
  job.limits = options.limits;
  job.overflow = Overflow::discard;
  add_files(job, program);
  TestResult& test = result.tests.emplace_back();
  test.test = "the tests";
  bool said = !handshake;
  Verdict verdict;
  if (handshake) {
    const auto deadline = std::chrono::steady_clock::now() + options.limits.wall + job.compile_limits.wall + std::chrono::seconds(5);
    Conversation line(sandbox, std::move(job), 4096, stop);
    if (is(line.receive(deadline), 1, "ended")) {
      const std::string nonce = hex_nonce();
      if (line.send(Value::tuple_of({Value::of("begin"), Value::of(nonce)}), deadline)) {
        const auto reply = line.receive(deadline);
        said = is(reply, 2, "done") && reply->items[1].text == nonce && !line.receive(deadline);
      }
    }
    verdict = line.finish(false);
  } else {
    result.notes.push_back("the exit status alone decides: a program that ends itself early can pass");
    verdict = sandbox.run(job, stop);
  }
  if (verdict.ok() && said) {
    test.outcome = TestOutcome::passed;
    return account(verdict);
  }
  ended_at(0, verdict, std::nullopt);
  if (verdict.ok()) test.message = "the program ended before its tests did";
  if (!std::holds_alternative<CompileError>(verdict.outcome)) test.got = shown(std::string_view(verdict.standard_error.bytes));
}

}  // namespace fixpoint::sandbox::detail
