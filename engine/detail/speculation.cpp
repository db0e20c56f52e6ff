#include "engine/detail/speculation.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace fixpoint::engine::detail {
namespace {

constexpr int longest_draft = 64;   // tokens
constexpr int read_beside_prefill = 256;  // tokens of text that a drafter reads in any step of its prompt, and two for each computed
// That all drafters together read beside decoding, or who fell behind would hold up everybody: so many in any step, and so many for
// each that decodes where that is more. The oldest read first: under less than what new requests bring, the youngest never would.
constexpr int read_beside_decode = 1024;
constexpr int read_beside_decode_each = 64;

bool decodes(const Chunk& chunk) { return chunk.samples && chunk.count == 1; }

std::vector<bool> line_ends(const Tokenizer& tokenizer) {
  std::vector<bool> ends(static_cast<std::size_t>(tokenizer.size()));
  for (std::size_t id = 0; id < ends.size(); ++id) {
    ends[id] = tokenizer.token_bytes(static_cast<TokenId>(id)).find('\n') != std::string_view::npos;
  }
  return ends;
}

}  // namespace

Speculator::Speculator(const EngineOptions& options, const Tokenizer& tokenizer)
    : options_(options), vocab_size_(tokenizer.size()), line_ends_(on() ? line_ends(tokenizer) : std::vector<bool>()) {}

SampleDrafts Speculator::begin(const Request& request) const {
  SampleDrafts drafts;
  if (on()) drafts.drafter = options_.drafter ? options_.drafter(request) : make_drafter(request, line_ends_);
  return drafts;
}

void Speculator::extend(Scheduler& scheduler, const StepPlan& plan, std::span<SampleDrafts* const> of_chunk) {
  if (!on()) return;
  read_prompts(plan, of_chunk);
  const auto decoding = std::count_if(plan.chunks.begin(), plan.chunks.end(), decodes);
  prefills_ = decoding < std::ssize(plan.chunks);
  const DraftLength::Step step{.decoding = static_cast<int>(decoding), .tokens = plan.tokens, .most_drafts = scheduler.room_for_drafts()};
  if (options_.speculation == Speculation::measured && !length_.may_pay(step)) return;
  ask(plan, of_chunk, step);
  const std::span<const int> wanted = lengths(step);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 1) continue;
    SampleDrafts& drafts = *of_chunk[chunks_[i]];
    drafts.verified = scheduler.add_drafts(chunks_[i], std::span(drafts.draft.tokens).first(static_cast<std::size_t>(wanted[i])));
  }
}

/// While a prompt is computed its drafter has time to read it.
void Speculator::read_prompts(const StepPlan& plan, std::span<SampleDrafts* const> of_chunk) {
  for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
    const Chunk& chunk = plan.chunks[i];
    of_chunk[i]->draft.tokens.clear();
    of_chunk[i]->verified = 0;
    if (decodes(chunk) || !of_chunk[i]->drafter) continue;
    try {
      static_cast<void>(of_chunk[i]->drafter->read(chunk.sequence->tokens(), read_beside_prefill + 2 * chunk.count));
    } catch (const std::exception&) {
      of_chunk[i]->drafter.reset();
    }
  }
}

/// Fills candidates_ with the drafts of the chunks that decode.
void Speculator::ask(const StepPlan& plan, std::span<SampleDrafts* const> of_chunk, const DraftLength::Step& step) {
  candidates_.clear();
  chunks_.clear();
  const int room = std::min(step.most_drafts, longest_draft);
  int to_read = std::max(read_beside_decode, read_beside_decode_each * step.decoding);
  for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
    SampleDrafts& drafts = *of_chunk[i];
    if (!decodes(plan.chunks[i]) || !drafts.drafter) continue;
    drafts.draft = propose(drafts, plan.chunks[i].sequence->tokens(), room, to_read);
    if (drafts.draft.tokens.empty()) continue;
    chunks_.push_back(i);
    candidates_.push_back({.source = drafts.draft.source,
                           .matched = drafts.draft.matched,
                           .length = static_cast<int>(drafts.draft.tokens.size()),
                           .acceptance = &drafts.acceptance});
  }
}

/// What the sample's drafter says, without what the model can't be asked about. It reads first, of the `to_read` tokens that are left.
Draft Speculator::propose(SampleDrafts& drafts, std::span<const TokenId> text, int room, int& to_read) const {
  Draft draft;
  try {
    to_read -= drafts.drafter->read(text, to_read);
    draft = drafts.drafter->propose(text, room);
  } catch (const std::exception&) {
    drafts.drafter.reset();
  }
  const auto in_vocabulary = [&](TokenId token) { return token >= 0 && token < vocab_size_; };
  draft.tokens.erase(std::find_if_not(draft.tokens.begin(), draft.tokens.end(), in_vocabulary), draft.tokens.end());
  if (draft.tokens.size() > static_cast<std::size_t>(room)) draft.tokens.resize(static_cast<std::size_t>(room));
  return draft;
}

std::span<const int> Speculator::lengths(const DraftLength::Step& step) {
  if (options_.speculation == Speculation::measured) return length_.choose(step, candidates_);
  whole_.clear();
  for (const DraftLength::Candidate& candidate : candidates_) whole_.push_back(candidate.length);
  return whole_;
}

void Speculator::learn(SampleDrafts& drafts, std::span<const TokenId> tokens) {
  const Draft& draft = drafts.draft;
  // A draft that was not tried still tells whether its first token would have been right.
  const std::size_t looked_at = std::min({draft.tokens.size(), tokens.size(), static_cast<std::size_t>(std::max(drafts.verified, 1))});
  if (looked_at == 0) return;
  const auto drafted = draft.tokens.begin() + static_cast<std::ptrdiff_t>(looked_at);
  const auto differs = std::mismatch(draft.tokens.begin(), drafted, tokens.begin()).first;
  const auto right = static_cast<int>(differs - draft.tokens.begin());
  length_.record(drafts.acceptance, draft.source, draft.matched, right, differs == drafted ? 0 : 1);
  if (drafts.verified == 0) return;
  DraftCounts& counts = counts_[static_cast<std::size_t>(draft.source)];
  ++counts.drafts;
  counts.draft_tokens += static_cast<std::uint64_t>(drafts.verified);
  counts.accepted_tokens += static_cast<std::uint64_t>(right);
  if (draft.source != DraftSource::previous_attempt) return;
  drafts.accepted_prediction_tokens += right;
  drafts.rejected_prediction_tokens += drafts.verified - right;
}

void Speculator::record_step(int tokens, std::chrono::nanoseconds time) {
  if (options_.speculation == Speculation::measured) length_.record_step(tokens, prefills_, time);
}

}  // namespace fixpoint::engine::detail
