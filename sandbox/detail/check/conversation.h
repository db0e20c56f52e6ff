#pragma once

#include "sandbox/detail/check/message.h"
#include "sandbox/sandbox.h"

#include <chrono>
#include <memory>
#include <optional>

namespace fixpoint::sandbox::detail {

// Why no message came.
enum class Silence { ended, late, garbled };

// One jail with a driver in it, and the judge's end of the line. The jail runs on a thread of its own; every method is for the
// thread that made the object. The destructor ends the run.
class Conversation {
 public:
  Conversation(Sandbox& sandbox, Job job, std::size_t max_frame_bytes, std::stop_token stop);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  [[nodiscard]] bool send(const Value& message, std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] tl::expected<Value, Silence> receive(std::chrono::steady_clock::time_point deadline);
  // One question with a fresh nonce: `kind`, nonce, `parts`. Any other answer than one with that nonce is `garbled`.
  [[nodiscard]] tl::expected<Answer, Silence> ask(const char* kind, std::vector<Value> parts,
                                                  std::chrono::steady_clock::time_point deadline);
  // Questions ahead of their answers, so that neither side waits for the other at each one: as many as surely fit into the
  // pipe, while may_ask(), best when runs_low(); they leave together, before the next answer is waited for. next_answer: the
  // answer to the oldest of them; any other than one with its nonce is `garbled`. What a program learns early are arguments;
  // what is expected of it is never there.
  [[nodiscard]] bool may_ask() const;
  [[nodiscard]] bool runs_low() const;
  void ask_ahead(std::string message, const Value& nonce);
  [[nodiscard]] tl::expected<Answer, Silence> next_answer(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] bool owes_answers() const;
  // Asks the driver to end and waits for it. Nothing when it said goodbye with the nonce of this question and was gone then.
  [[nodiscard]] std::optional<Silence> end(std::chrono::steady_clock::time_point deadline);
  // Ends the run if it still goes on, and says how it ended. A run that was stopped here reads as `cancelled`.
  Verdict finish(bool stop_now);

 private:
  bool send(const std::string& bytes, std::chrono::steady_clock::time_point deadline);
  void send_questions(std::chrono::steady_clock::time_point deadline);

  struct State;
  std::unique_ptr<State> state_;
};

// Sixteen bytes from the kernel's generator, as a value.
Value fresh_nonce();

}  // namespace fixpoint::sandbox::detail
