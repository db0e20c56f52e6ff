#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "agent/generator.h"
#include "agent/openai_generator.h"

namespace fixpoint::agent {

/// A prompt whose answer's length is asked for, not left to the model: what a measurement needs.
struct StreamRequest {
  std::variant<std::string, std::vector<Message>> prompt;  ///< text: /completions; messages: /chat/completions
  std::int64_t tokens = 16;                                ///< of the answer: max_tokens with ignore_eos, greedy
  std::string prediction;                                  ///< text that the answer is likely to resemble; may be empty
  std::chrono::milliseconds timeout{600'000};
};

struct StreamedAnswer {
  Generation generation;
  /// When each event that stands for tokens was read; a server may put several tokens into one.
  std::vector<std::chrono::steady_clock::time_point> arrivals;
};

/// Asks any OpenAI-compatible server and keeps the time of every piece. Nothing is retried: a refusal is a result. Any
/// thread may use it.
class OpenAiStream {
 public:
  virtual ~OpenAiStream() = default;
  /// Blocks. A server that refuses the field `prediction` is asked again without it, from then on always.
  [[nodiscard]] virtual tl::expected<StreamedAnswer, GenerateError> ask(const StreamRequest& request, std::stop_token stop) = 0;
  /// Whether the server has refused the field `prediction`.
  [[nodiscard]] virtual bool refuses_prediction() const = 0;
  /// "MODEL at URL", never with a key.
  [[nodiscard]] virtual std::string name() const = 0;
};

/// Error: the address can't be used.
[[nodiscard]] tl::expected<std::unique_ptr<OpenAiStream>, std::string> make_openai_stream(OpenAiOptions options);

}  // namespace fixpoint::agent
