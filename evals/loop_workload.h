#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/generator.h"
#include "evals/benchmark.h"

namespace fixpoint::evals {

/// One round as it is replayed: what is added to the session's prompt, and the attempt that answered it.
struct LoopRound {
  std::string ask;      ///< round 0: the session's own part of the task; later: feedback on the attempt before
  std::string attempt;  ///< what the history of later rounds holds, whatever the server wrote
  std::int64_t tokens = 1;            ///< of the answer; asked for exactly
  std::chrono::milliseconds think{0}; ///< from the answer's end to the next round: the sandbox
  bool operator==(const LoopRound&) const = default;
};

struct LoopSession {
  std::string id;
  std::vector<LoopRound> rounds;
  bool operator==(const LoopSession&) const = default;
};

/// What a benchmark of the repair loop asks, byte for byte the same of every server.
struct LoopWorkload {
  std::string shared;  ///< stands before every session's first ask; may be empty
  std::vector<LoopSession> sessions;
  bool operator==(const LoopWorkload&) const = default;
};

/// The prompt of a round as plain text: the shared context, and every ask and attempt up to this round's ask.
[[nodiscard]] std::string prompt_text(const LoopWorkload& workload, const LoopSession& session, std::size_t round);
/// The same as a conversation: asks are the user's, attempts the assistant's; the shared context begins the first.
[[nodiscard]] std::vector<agent::Message> prompt_messages(const LoopWorkload& workload, const LoopSession& session, std::size_t round);

struct LoopShape {
  int sessions = 8;
  int rounds = 4;                ///< of each session, the first attempt included
  int shared_tokens = 1000;
  int task_tokens = 40;          ///< of a session's own part
  int attempt_tokens = 64;
  int feedback_tokens = 48;
  double edit_rate = 0.05;       ///< of an attempt's lines, from one attempt to the next
  std::chrono::milliseconds think{0};
  std::uint64_t seed = 1;
};

/// Tokens of a text, for sizes only.
using CountTokens = std::function<std::int64_t(std::string_view)>;
/// A guess that needs no tokenizer: code has about 3.1 bytes a token in vocabularies of 32,000 to 152,000 tokens.
[[nodiscard]] std::int64_t guessed_tokens(std::string_view text);

/// Sessions that look like repairs of Python functions. The same shape, seed and count give the same bytes. Sizes are met
/// within a line. Lines are edited so that the sum over the rounds keeps the edit rate: with short attempts a round may
/// leave its attempt as it was.
[[nodiscard]] LoopWorkload generate_loop(const LoopShape& shape, const CountTokens& count);

/// A trace is JSON lines: {"fixpoint_loop_trace": 1, "shared": TEXT}, then one line a round,
/// {"session": ID, "round": N, "ask": TEXT, "attempt": TEXT, "tokens": N, "think_ms": N}, rounds of a session in order from 0;
/// sessions may be interleaved.
[[nodiscard]] std::string to_trace(const LoopWorkload& workload);
/// `file` stands in errors, which name the line and the field.
[[nodiscard]] tl::expected<LoopWorkload, DataError> parse_trace(std::string_view text, const std::filesystem::path& file);
[[nodiscard]] tl::expected<LoopWorkload, DataError> load_trace(const std::filesystem::path& file);

}  // namespace fixpoint::evals
