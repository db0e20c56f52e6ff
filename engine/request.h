#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine {

/// How a token is chosen from logits. Applied in this order: logit_bias, penalties, temperature, min_p, top_k, top_p.
struct SamplingParams {
  float temperature = 1.0F;         ///< 0 (below 1e-5): greedy, the lowest id wins ties
  int top_k = 0;                    ///< keep the k most likely; 0: all
  float top_p = 1.0F;               ///< keep the most likely whose probabilities sum to top_p, in (0, 1]
  float min_p = 0.0F;               ///< keep tokens at least min_p times as likely as the likeliest, in [0, 1]
  float repetition_penalty = 1.0F;  ///< over prompt and output: positive logits divided, negative ones multiplied
  float presence_penalty = 0.0F;    ///< over the output: subtracted once
  float frequency_penalty = 0.0F;   ///< over the output: subtracted per occurrence
  std::vector<std::pair<TokenId, float>> logit_bias;  ///< added to the logits
  std::optional<std::uint64_t> seed;  ///< same seed, same request: same tokens, whatever else runs; unset: a fresh one
  bool logprobs = false;            ///< report the log-probability of each token (of the raw logits, temperature 1)
  int top_logprobs = 0;             ///< and of this many likeliest alternatives, 0..20
};

/// One prompt and how to continue it.
struct Request {
  std::vector<TokenId> prompt;      ///< at least one token
  SamplingParams sampling;
  std::optional<int> max_tokens;    ///< unset: until the context (or the KV memory) is full
  int min_tokens = 0;               ///< end-of-text and stop tokens are not chosen before; stop strings still end the text
  std::vector<std::string> stop_strings;  ///< not part of the text
  std::vector<TokenId> stop_tokens;       ///< besides the tokenizer's own; ends `Output::tokens`, adds no text
  bool ignore_eos = false;          ///< the tokenizer's own stop tokens do not stop
  int n = 1;                        ///< parallel samples; they share the prompt's blocks
  std::string tenant;               ///< requests share cached prefixes within a tenant only; set by the server, not by a client
  int priority = 0;                 ///< -100..100, higher runs first; waiting raises it (ageing)
  /// Text the output is likely to resemble: drafts for speculation; changes no token. Cut off where it is longer than prompt
  /// and output may get together.
  std::vector<TokenId> prediction;
  std::chrono::milliseconds pin_ttl{0};  ///< keep this request's blocks for so long after it ends, or until Engine::end_session
  std::string session;              ///< a newer pin of the same tenant and session replaces the older one
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0F;
  bool operator==(const TokenLogprob&) const = default;
};

struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  ///< likeliest first; `top_logprobs` of them
  bool operator==(const TokenLogprobs&) const = default;
};

enum class FinishReason : std::uint8_t { stop, length, cancelled, error };
inline constexpr std::size_t num_finish_reasons = 4;
[[nodiscard]] std::string_view to_string(FinishReason reason);

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;      ///< prompt tokens that were not computed again
  int completion_tokens = 0;  ///< stop token included
  int accepted_prediction_tokens = 0;  ///< of `Request::prediction`, that were tried as drafts and right …
  int rejected_prediction_tokens = 0;  ///< … and wrong; how many are tried depends on what else the engine does
};

/// Measured on one monotonic clock, from submit.
struct Timings {
  std::chrono::nanoseconds queued{0};       ///< until the first step that computed something for it
  std::chrono::nanoseconds first_token{0};  ///< until the first token; 0 if there was none
  std::chrono::nanoseconds total{0};
};

/// How a sample ended.
struct Finish {
  FinishReason reason = FinishReason::stop;
  std::variant<std::monostate, std::string, TokenId> stop;  ///< the stop string or stop token that was met
  std::string error;                                        ///< for FinishReason::error
  Usage usage;
  Timings timings;
};

/// News of one sample of a request. The last one of each sample holds `finish`; its text and tokens count too.
struct Output {
  int sample = 0;                        ///< 0..n-1
  std::string text;                      ///< new text: valid UTF-8, never a part of a stop string
  std::vector<TokenId> tokens;           ///< new tokens; text may lag behind them
  std::vector<TokenLogprobs> logprobs;   ///< one per token when asked for
  std::optional<Finish> finish;
};

/// Called on the engine's thread between steps: be quick (push to a queue), do not throw, do not wait for the engine.
using OnOutput = std::function<void(Output)>;

/// All of one sample.
struct CompletedSample {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<TokenLogprobs> logprobs;
  Finish finish;
};

struct Completion {
  std::vector<CompletedSample> samples;  ///< [n]
};

/// Why a request was not taken.
struct SubmitError {
  enum class Kind : std::uint8_t {
    invalid,    ///< a field is out of range; `field` names it
    too_long,   ///< the prompt does not fit the model's context
    never_fits, ///< it fits the context but not the KV memory, even alone
    queue_full, ///< too many requests are waiting; try again later
    stopped,    ///< the engine is shutting down
  };
  Kind kind = Kind::invalid;
  std::string field;
  std::string detail;
  [[nodiscard]] std::string message() const { return field.empty() ? detail : field + ": " + detail; }
};

}  // namespace fixpoint::engine
