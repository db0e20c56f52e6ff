#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <vector>

#include "engine/request.h"
#include "kernels/row_choice.h"

namespace fixpoint::engine {

/// How often each token occurs in the prompt and in the output of one sample: what the penalties need.
class TokenHistory {
 public:
  struct Count {
    bool in_prompt = false;
    int in_output = 0;
  };
  void add_prompt(std::span<const TokenId> tokens);
  void add_output(TokenId token) { ++counts_[token].in_output; }
  [[nodiscard]] const std::unordered_map<TokenId, Count>& counts() const { return counts_; }

 private:
  std::unordered_map<TokenId, Count> counts_;
};

/// The first parameter that is out of range, if any; `vocab_size` bounds the ids in logit_bias.
[[nodiscard]] std::optional<SubmitError> check(const SamplingParams& params, std::int64_t vocab_size);
/// Whether sampling with these parameters reads the history.
[[nodiscard]] bool uses_history(const SamplingParams& params);

/// Everything that a choice depends on besides the logits.
struct SamplePoint {
  const SamplingParams* params = nullptr;
  std::uint64_t seed = 0;
  std::uint32_t sample = 0;             ///< index among the request's parallel samples
  std::uint64_t position = 0;           ///< index of the token in the output
  const TokenHistory* history = nullptr;  ///< may be null unless uses_history(params)
  std::span<const TokenId> forbidden;   ///< never chosen (stop tokens before min_tokens)
};

struct SampledToken {
  TokenId token = 0;
  TokenLogprobs logprobs;  ///< filled when asked for
};

inline constexpr std::string_view logits_not_finite = "the model's logits are not finite";

/// Chooses tokens from logits: bias, penalties, temperature, min_p, top_k, top_p, in this order; each filter works on what
/// the one before it left. Ids at or above `vocab_size` are padding and never chosen. The choice is a function of the
/// arguments alone, in integers where order would matter (kernels/row_choice.h): every device makes the same. Linear in the
/// vocabulary: selections, no sorts. One thread; holds scratch memory.
class Sampler {
 public:
  explicit Sampler(std::int64_t vocab_size) : vocab_size_(static_cast<std::size_t>(vocab_size)) {}

  /// Error, in words: the logits hold NaN or +inf, or nothing is left to choose from.
  [[nodiscard]] tl::expected<SampledToken, std::string> sample(std::span<const float> logits, const SamplePoint& point);

  /// The same choice for somebody who has the row of logits and nothing else (`row` is left to the caller). Unset where it
  /// depends on more, or log-probabilities are wanted.
  [[nodiscard]] std::optional<kernels::RowChoice> row_choice(const SamplePoint& point) const;
  /// The token of such a choice; below 0 where the row holds NaN or +inf, or nothing above -inf.
  [[nodiscard]] TokenId choose(std::span<const float> logits, const kernels::RowChoice& choice);

  struct Probability {
    TokenId token = 0;
    float probability = 0.0F;
  };
  /// The distribution that `sample` draws from, by ascending id, zeros left out. Greedy: one token of probability 1.
  [[nodiscard]] tl::expected<std::vector<Probability>, std::string> distribution(std::span<const float> logits,
                                                                                const SamplePoint& point);

 private:
  struct Candidate {
    float logit = 0.0F;
    TokenId token = 0;
    std::uint64_t weight = 0;
  };
  struct Filtered {
    bool everything = false;  // all ids, weights in weights_; else candidates_, by ascending id
    std::uint64_t total = 0;
  };

  [[nodiscard]] bool find_max(std::span<const float> logits);
  [[nodiscard]] tl::expected<std::span<const float>, std::string> adjust(std::span<const float> logits, const SamplePoint& point);
  [[nodiscard]] Filtered filter(std::span<const float> logits, const kernels::RowChoice& choice);
  void collect_at_least(std::span<const float> logits, float floor);
  void collect_top(std::span<const float> logits, std::size_t k, float floor);
  void collect_mass(std::span<const float> logits, std::uint64_t mass, float inverse_temperature);
  std::uint64_t weigh(float inverse_temperature);
  std::uint64_t weigh_all(std::span<const float> logits, float max, float inverse_temperature);
  std::uint64_t keep_mass(std::uint64_t mass);
  void keep_through(const Candidate& last);
  [[nodiscard]] TokenId draw(const Filtered& filtered, double u) const;
  [[nodiscard]] TokenLogprobs logprobs(std::span<const float> logits, TokenId chosen, int top);

  std::size_t vocab_size_;
  float max_ = 0.0F;                   // of the adjusted logits, and the first token that has it
  TokenId argmax_ = 0;
  std::vector<float> adjusted_;        // logits after bias and penalties
  std::vector<float> block_max_;       // per block of ids
  std::vector<float> weights_;         // unnormalised probabilities of all ids
  std::vector<std::uint64_t> block_weight_;  // sums per block of what fixed_point makes of them
  std::vector<Candidate> candidates_;  // by ascending id
  std::vector<Candidate> ranked_;      // scratch of the selections
};

}  // namespace fixpoint::engine
