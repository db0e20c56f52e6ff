#include "evals/loop_recording.h"

#include <algorithm>

#include "agent/prompt.h"

namespace fixpoint::evals {
namespace {

bool is_attempt(agent::Purpose purpose) {
  return purpose == agent::Purpose::draft || purpose == agent::Purpose::repair || purpose == agent::Purpose::review;
}

}  // namespace

void LoopRecorder::take(const std::string& session, const agent::Stamped& event) {
  const std::scoped_lock lock(mutex_);
  if (const auto* started = std::get_if<agent::GenerationStarted>(&event.event)) {
    Written& written = sessions_[session][started->attempt];
    written.ask = started->ask;
    written.asked = event.made;
  } else if (const auto* generated = std::get_if<agent::Generated>(&event.event)) {
    Written& written = sessions_[session][generated->attempt];
    written.text = generated->text;
    written.tokens = generated->usage.completion_tokens;
    written.answered = event.made;
    written.finished = true;
  }
}

LoopWorkload LoopRecorder::workload() const {
  const std::scoped_lock lock(mutex_);
  LoopWorkload workload;
  for (const auto& [name, attempts] : sessions_) {
    for (LoopSession& session : conversations_of(name, attempts)) workload.sessions.push_back(std::move(session));
  }
  return workload;
}

std::vector<LoopSession> LoopRecorder::conversations_of(const std::string& session, const std::map<int, Written>& attempts) {
  std::vector<LoopSession> out;
  std::vector<int> last;  // of each conversation: its last attempt
  for (const auto& [number, written] : attempts) {
    if (!written.finished || written.text.empty() || !is_attempt(written.ask.purpose)) continue;
    LoopRound round{.ask = written.ask.user_text, .attempt = agent::answer_in_history(written.text), .tokens = std::max<std::int64_t>(1, written.tokens)};
    if (!written.ask.parent) {
      out.push_back({.id = out.empty() ? session : session + "/" + std::to_string(number), .rounds = {std::move(round)}});
      last.push_back(number);
      continue;
    }
    const auto found = std::find(last.begin(), last.end(), *written.ask.parent);
    if (found == last.end() || !written.ask.whole_history) continue;
    LoopSession& conversation = out[static_cast<std::size_t>(found - last.begin())];
    const auto pause = written.asked - attempts.at(*found).answered;
    conversation.rounds.back().think = std::max(std::chrono::milliseconds(0), std::chrono::round<std::chrono::milliseconds>(pause));
    conversation.rounds.push_back(std::move(round));
    *found = number;
  }
  return out;
}

}  // namespace fixpoint::evals
