#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace fixpoint::engine {

/// Where a draft is copied from, the likeliest first.
enum class DraftSource : std::uint8_t {
  previous_attempt,  ///< `Request::prediction`, at the edit cursor
  session_text,      ///< what followed the newest earlier occurrence of the text's end, in prompt and output
  prompt,            ///< what followed the last two or three tokens in the prompt
};
inline constexpr std::size_t num_draft_sources = 3;
[[nodiscard]] std::string_view to_string(DraftSource source);

/// Tokens that may come next. A guess: they count for nothing until the model has been asked.
struct Draft {
  DraftSource source = DraftSource::session_text;
  int matched = 0;  ///< how many tokens before it agree with those before the place that it is copied from
  std::vector<TokenId> tokens;
};

/// Guesses how one sample goes on. Knows tokens, no tensors. One thread at a time; lives as long as its sample and is
/// never used for another, so what one request says drafts for no other.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// Takes note of up to `at_most` tokens of the text that it hasn't seen, oldest first; returns how many. Each call's text
  /// (prompt, then output) begins with the last call's. Amortised O(1) for each token, some 0.2 us: when there is time for that is
  /// for the caller to say.
  virtual int read(std::span<const TokenId> text, int at_most) = 0;
  /// What may follow the text: at most `max_tokens`, none where there is no idea. Text that was not read yet gives fewer ideas.
  [[nodiscard]] virtual Draft propose(std::span<const TokenId> text, int max_tokens) = 0;
};

/// The request outlives the drafter.
using MakeDrafter = std::function<std::unique_ptr<Drafter>(const Request& request)>;

/// The engine's own: the sources above in their order. `line_ends`: by token id, whether the token's text holds a line
/// feed. Both must outlive the drafter.
[[nodiscard]] std::unique_ptr<Drafter> make_drafter(const Request& request, const std::vector<bool>& line_ends);

}  // namespace fixpoint::engine
