#include "engine/detokenizer.h"

#include <algorithm>
#include <utility>

#include "engine/utf8.h"

namespace fixpoint::engine {

Detokenizer::Stop::Stop(std::string stop_string)
    : given(std::move(stop_string)), text(as_valid_utf8(given)), fallbacks(text.size(), 0) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) {
      length = fallbacks[length - 1];
    }
    length += text[i] == text[length] ? 1U : 0U;
    fallbacks[i] = length;
  }
}

bool Detokenizer::Stop::advance(char byte) {
  while (matched > 0 && text[matched] != byte) {
    matched = fallbacks[matched - 1];
  }
  matched += text[matched] == byte ? 1U : 0U;
  return matched == text.size();
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, std::vector<std::string> stop_strings) : tokenizer_(&tokenizer) {
  for (std::string& stop : stop_strings) {
    if (!stop.empty()) {
      stops_.emplace_back(std::move(stop));
    }
  }
}

Detokenizer::Piece Detokenizer::push(TokenId token) {
  if (!matched_stop_.empty()) {
    return {.text = {}, .stopped = true};
  }
  const std::size_t fresh = held_.size();
  decode(tokenizer_->token_bytes(token), false);
  return release(fresh);
}

std::string Detokenizer::finish() {
  if (!matched_stop_.empty()) {
    return {};
  }
  const std::size_t fresh = held_.size();
  decode({}, true);
  Piece last = release(fresh);
  if (!last.stopped) {
    last.text += give(held_.size());
  }
  return std::move(last.text);
}

void Detokenizer::decode(std::string_view bytes, bool at_end) {
  std::string joined;
  if (!incomplete_.empty()) {
    joined = std::exchange(incomplete_, {});
    bytes = joined.append(bytes);
  }
  for (std::size_t pos = 0; pos < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, pos);
    if (step.kind == Utf8Step::Kind::incomplete && !at_end) {
      incomplete_ = bytes.substr(pos);
      return;
    }
    held_ += step.kind == Utf8Step::Kind::character ? bytes.substr(pos, step.length) : kReplacement;
    pos += step.length;
  }
}

Detokenizer::Piece Detokenizer::release(std::size_t fresh) {
  for (std::size_t at = fresh; at < held_.size(); ++at) {
    const Stop* complete = nullptr;
    for (Stop& stop : stops_) {
      if (stop.advance(held_[at]) && (complete == nullptr || stop.text.size() > complete->text.size())) {
        complete = &stop;
      }
    }
    if (complete != nullptr) {
      matched_stop_ = complete->given;
      return {.text = give(at + 1 - complete->text.size()), .stopped = true};
    }
  }
  std::size_t keep = 0;
  for (const Stop& stop : stops_) {
    keep = std::max(keep, stop.matched);
  }
  return {.text = give(held_.size() - keep), .stopped = false};
}

std::string Detokenizer::give(std::size_t end) {
  std::string text = held_.substr(held_from_, end - held_from_);
  held_from_ = end;
  // Moving what is left to the front costs no more than what has been given since the last time.
  if (held_from_ >= held_.size() - held_from_) {
    held_.erase(0, held_from_);
    held_from_ = 0;
  }
  return text;
}

}  // namespace fixpoint::engine
