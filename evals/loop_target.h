#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "agent/openai_stream.h"
#include "engine/language_model.h"

namespace fixpoint::evals {

/// One answer that a target is asked for.
struct LoopQuestion {
  std::string session;  ///< rounds of one session share a prefix
  std::variant<std::string, std::vector<agent::Message>> prompt;
  std::int64_t tokens = 1;
  std::string prediction;  ///< empty: none
};

struct LoopAnswer {
  std::vector<std::chrono::steady_clock::time_point> arrivals;  ///< of pieces of one or more tokens; at least one
  agent::Usage usage;
};

/// Who answers: our engine in this process, or a server. answer() blocks and may be called from many threads at once.
class LoopTarget {
 public:
  virtual ~LoopTarget() = default;
  /// Error: a message for a person; "cancelled" after a stop request.
  [[nodiscard]] virtual tl::expected<LoopAnswer, std::string> answer(const LoopQuestion& question, std::stop_token stop) = 0;
  /// Nothing more is asked for the session.
  virtual void end(const std::string& /*session*/) {}
  [[nodiscard]] virtual std::string name() const = 0;
  /// What a reader of the numbers should know; empty: nothing.
  [[nodiscard]] virtual std::string note() const { return {}; }
};

/// The model must outlive the target.
[[nodiscard]] std::unique_ptr<LoopTarget> make_engine_target(engine::LanguageModel& model);
/// Any OpenAI-compatible server. Error: the address can't be used.
[[nodiscard]] tl::expected<std::unique_ptr<LoopTarget>, std::string> make_server_target(agent::OpenAiOptions options, std::chrono::milliseconds timeout);

}  // namespace fixpoint::evals
