#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/tokenizer.h"
#include "server/openai.h"

namespace fixpoint::server {

/// Engine outputs -> the JSON of OpenAI's chat.completion(.chunk) and text_completion objects. One completion each; one
/// thread at a time. `tokenizer` must outlive it.
class CompletionFormat {
 public:
  struct Names {
    std::string id;
    std::string model;
    std::int64_t created = 0;  ///< seconds since 1970
  };
  /// `echoes`: a text per prompt that comes before its completions; empty where nothing is echoed.
  CompletionFormat(bool chat, Names names, bool include_usage, const engine::Tokenizer& tokenizer, std::vector<std::string> echoes, int n);

  /// Server-sent events: one for each piece of a choice, the first of each choice with its role.
  [[nodiscard]] std::string events(int choice, const engine::Output& output);
  /// The usage where it was asked for, and [DONE].
  [[nodiscard]] std::string last_events() const;
  /// An error in the middle of a stream.
  [[nodiscard]] static std::string error_event(const ApiError& error);

  /// Keeps a piece for whole().
  void keep(int choice, engine::Output output);
  [[nodiscard]] std::string whole() const;

  /// Sums of what the samples reported.
  struct Totals {
    std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
    std::int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
  };
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  struct Choice {
    bool begun = false;
    std::size_t text_bytes = 0;  ///< given out so far: text_offset of completions' logprobs
    std::string text;
    std::vector<engine::TokenLogprobs> logprobs;
    engine::Finish finish;
    bool has_logprobs = false;
  };
  [[nodiscard]] std::string event(const std::string& choices, bool usage) const;
  [[nodiscard]] std::string head(std::string_view object) const;
  [[nodiscard]] std::string usage() const;
  [[nodiscard]] std::string logprobs(const std::vector<engine::TokenLogprobs>& tokens, std::size_t text_offset) const;
  [[nodiscard]] std::string token_json(const engine::TokenLogprob& token) const;
  void count(int choice, const engine::Output& output);
  Choice& choice(int index);

  bool chat_;
  Names names_;
  bool include_usage_;
  const engine::Tokenizer* tokenizer_;
  std::vector<std::string> echoes_;
  int n_;
  std::vector<Choice> choices_;
  Totals totals_;
};

}  // namespace fixpoint::server
