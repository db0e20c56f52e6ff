#pragma once

#include "sandbox/check.h"
#include "sandbox/detail/check/conversation.h"

namespace fixpoint::sandbox::detail {

inline constexpr std::size_t max_message_bytes = 64u << 20;

// One check of one program: what every kind of check needs.
struct Judge {
  Sandbox& sandbox;
  const Program& program;
  const CheckOptions& options;
  std::stop_token stop;
  CheckResult result = {};

  void printed(const PrintedCheck& check);
  void calls(const CallCheck& check);
  void text(const TextCheck& check);
  void driver_tests(const TextCheck& check);    // Python, JavaScript
  void appended_tests(const TextCheck& check);  // languages without a driver for tests

  // Adds a run's use and verdict to the result.
  void account(const Verdict& verdict);
  // A run that came to no normal end: says so at the test `index`, where there is one, and in the result where it is the sandbox's
  // doing; accounts for it.
  void ended_at(std::size_t index, Verdict verdict, std::optional<Silence> silence);
  std::string shown(const Value& value) const { return to_text(value, options.max_text_bytes); }
  std::string shown(std::string_view text) const;
  std::chrono::steady_clock::time_point call_deadline() const { return std::chrono::steady_clock::now() + options.call_wall; }
  // For a jail's first answer: the start of an interpreter, and of the program, is no call.
  std::chrono::steady_clock::time_point start_deadline() const { return call_deadline() + options.limits.wall; }
};

// The program's files into a job that has its own already.
void add_files(Job& job, const Program& program);

// A job whose program is the driver of this language around `program`; nothing for languages without one.
std::optional<Job> driver_job(const Program& program, const std::string& entry_point, const Limits& limits);

// A limit that ended a run, as words; empty where none did.
std::string limit_of(const Outcome& outcome);
// How a test ends that never came to its answer.
void describe_end(TestResult& test, const Verdict& verdict, std::optional<Silence> silence);
// The text at a place of a tuple; empty where there is none.
std::string text_at(const Value& record, std::size_t index);
// The record of an exception, from a driver's answer.
void describe_exception(TestResult& test, const Value& record, std::size_t max_text_bytes);
bool is_exception(const Value& record, std::string_view class_name);

// The candidate's side of a driver: asked to read its program, asked for calls.
tl::expected<Answer, Silence> load(Conversation& line, const Program& program, const std::string& module_name,
                                   bool allow_objects, std::chrono::steady_clock::time_point deadline);

}  // namespace fixpoint::sandbox::detail
