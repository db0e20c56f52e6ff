#include "engine/drafter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/detail/edit_cursor.h"
#include "engine/detail/ngram_index.h"
#include "engine/detail/suffix_automaton.h"

namespace fixpoint::engine {
namespace {

constexpr int shortest_repeat = 4;    // tokens; shorter ends of the text say little, and are looked up in the prompt alone

class CopyingDrafter final : public Drafter {
 public:
  CopyingDrafter(const Request& request, const std::vector<bool>& line_ends)
      : prompt_tokens_(request.prompt.size()), prediction_(&request.prediction), line_ends_(&line_ends) {}

  int read(std::span<const TokenId> text, int at_most) override {
    const std::size_t from = repeats_.text().size();
    const std::size_t until = std::min(text.size(), from + static_cast<std::size_t>(std::max(at_most, 0)));
    for (std::size_t i = from; i < until; ++i) {
      repeats_.push(text[i]);
      if (i >= prompt_tokens_) continue;
      for (detail::NgramIndex& runs : prompt_runs_) runs.push(text.first(i + 1));
    }
    return static_cast<int>(until - from);
  }

  Draft propose(std::span<const TokenId> text, int max_tokens) override {
    follow(text);
    if (max_tokens < 1) return {};
    if (Draft draft = from_previous_attempt(max_tokens); !draft.tokens.empty()) return draft;
    if (repeats_.text().size() < text.size()) return {};
    if (repeats_.match_length() >= shortest_repeat) {
      return {DraftSource::session_text, repeats_.match_length(), repeats_.continuation(max_tokens)};
    }
    return from_prompt(text, max_tokens);
  }

 private:
  /// The prediction is indexed when a draft is first asked for: of many samples, few may ever be.
  void follow(std::span<const TokenId> text) {
    if (prediction_->empty()) return;
    if (!cursor_) cursor_.emplace(*prediction_, *line_ends_);
    const auto output = text.subspan(prompt_tokens_);
    while (followed_ < output.size()) cursor_->advance(output.first(++followed_));
  }

  [[nodiscard]] Draft from_previous_attempt(int max_tokens) const {
    if (!cursor_) return {};
    const auto next = cursor_->next();
    const auto end = next.begin() + static_cast<std::ptrdiff_t>(std::min(next.size(), static_cast<std::size_t>(max_tokens)));
    return {DraftSource::previous_attempt, cursor_->matched(), {next.begin(), end}};
  }

  [[nodiscard]] Draft from_prompt(std::span<const TokenId> text, int max_tokens) const {
    const auto prompt = text.first(prompt_tokens_);
    for (std::size_t i = 0; i < prompt_runs_.size(); ++i) {
      const auto begin = prompt_runs_[i].find(prompt, text);
      if (!begin) continue;
      const auto next = prompt.subspan(*begin, std::min(prompt.size() - *begin, static_cast<std::size_t>(max_tokens)));
      return {DraftSource::prompt, run_lengths[i], {next.begin(), next.end()}};
    }
    return {};
  }

  static constexpr std::array<int, 2> run_lengths{3, 2};

  std::size_t prompt_tokens_;
  const std::vector<TokenId>* prediction_;
  const std::vector<bool>* line_ends_;
  std::optional<detail::EditCursor> cursor_;
  std::size_t followed_ = 0;  // tokens of the output that the cursor has seen
  detail::SuffixAutomaton repeats_;
  std::array<detail::NgramIndex, 2> prompt_runs_{detail::NgramIndex(run_lengths[0]), detail::NgramIndex(run_lengths[1])};
};

}  // namespace

std::string_view to_string(DraftSource source) {
  switch (source) {
    case DraftSource::previous_attempt: return "previous_attempt";
    case DraftSource::session_text: return "session_text";
    case DraftSource::prompt: return "prompt";
  }
  return "unknown";
}

std::unique_ptr<Drafter> make_drafter(const Request& request, const std::vector<bool>& line_ends) {
  return std::make_unique<CopyingDrafter>(request, line_ends);
}

}  // namespace fixpoint::engine
