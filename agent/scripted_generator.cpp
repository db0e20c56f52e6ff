#include "agent/scripted_generator.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "agent/detail/json_text.h"
#include "agent/detail/names.h"
#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

constexpr std::size_t kBytesPerToken = 4;

std::int64_t tokens_of(std::string_view text) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>((text.size() + kBytesPerToken - 1) / kBytesPerToken));
}

class ScriptedGenerator final : public Generator {
 public:
  ScriptedGenerator(std::vector<ScriptedAnswer> answers, std::size_t skip) : answers_(std::move(answers)), next_(skip) {}

  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text,
                                                   std::stop_token stop) override {
    const ScriptedAnswer* answer = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      if (stop.stop_requested()) return tl::unexpected(GenerateError{.kind = GenerateError::Kind::cancelled});
      if (next_ >= answers_.size()) {
        return tl::unexpected(GenerateError{.kind = GenerateError::Kind::exhausted, .detail = "the script has no more answers"});
      }
      answer = &answers_[next_++];
    }
    if (!wait(std::min(answer->delay, request.timeout), stop)) {
      return tl::unexpected(GenerateError{.kind = GenerateError::Kind::cancelled});
    }
    if (answer->delay > request.timeout) {
      return tl::unexpected(GenerateError{.kind = GenerateError::Kind::timeout, .detail = "no answer in time"});
    }
    return write(*answer, request, on_text);
  }

  std::string name() const override { return "script"; }

 private:
  /// False when stopped.
  bool wait(std::chrono::milliseconds delay, const std::stop_token& stop) {
    if (delay.count() <= 0) return true;
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, delay, [] { return false; });
    return !stop.stop_requested();
  }

  static tl::expected<Generation, GenerateError> write(const ScriptedAnswer& answer, const GenerateRequest& request,
                                                       const OnText& on_text) {
    std::size_t bytes = std::min(answer.text.size(), request.max_bytes);
    std::int64_t tokens = answer.tokens > 0 ? answer.tokens : tokens_of(answer.text);
    if (tokens > request.max_tokens) {  // cut where the limit would have been
      bytes = std::min(bytes, static_cast<std::size_t>(static_cast<double>(answer.text.size()) *
                                                       static_cast<double>(request.max_tokens) / static_cast<double>(tokens)));
      tokens = request.max_tokens;
    }
    bytes = detail::floor_character(answer.text, bytes);
    const bool cut = bytes < answer.text.size();
    std::string text = detail::to_valid_utf8(std::string_view(answer.text).substr(0, bytes));
    if (cut) tokens = std::min(tokens, tokens_of(text));
    if (on_text) on_text(text);
    std::int64_t prompt = 0;
    for (const Message& message : request.messages) prompt += tokens_of(message.content);
    const Usage usage{.prompt_tokens = prompt, .completion_tokens = tokens};
    if (answer.error) {
      return tl::unexpected(GenerateError{.kind = *answer.error, .detail = "scripted", .partial = text, .usage = usage});
    }
    return Generation{.text = std::move(text), .finish = cut ? Finish::length : answer.finish, .usage = usage};
  }

  std::vector<ScriptedAnswer> answers_;
  std::mutex mutex_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Generator> make_scripted_generator(std::vector<ScriptedAnswer> answers, std::size_t skip) {
  return std::make_unique<ScriptedGenerator>(std::move(answers), skip);
}

tl::expected<std::vector<ScriptedAnswer>, std::string> parse_script(std::string_view text) {
  const auto parsed = detail::parse_json(text);
  if (!parsed) return tl::unexpected(parsed.error());
  const nlohmann::json& json = *parsed;
  if (!json.is_array()) return tl::unexpected(std::string("not a JSON list"));
  std::vector<ScriptedAnswer> answers;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const nlohmann::json& item = json[i];
    const std::string where = "[" + std::to_string(i) + "]";
    if (item.is_string()) {
      answers.push_back({.text = item.get<std::string>()});
      continue;
    }
    if (!item.is_object()) return tl::unexpected(where + ": neither a string nor an object");
    try {
      ScriptedAnswer answer{.text = item.value("text", ""),
                            .tokens = item.value("tokens", std::int64_t{0}),
                            .delay = std::chrono::milliseconds(item.value("delay_ms", std::int64_t{0}))};
      const auto finish = detail::value_of<Finish>(item.value("finish", "stop"));
      if (!finish) return tl::unexpected(where + ".finish: neither stop nor length");
      answer.finish = *finish;
      if (item.contains("error")) {
        answer.error = detail::value_of<GenerateError::Kind>(item.value("error", ""));
        if (!answer.error) return tl::unexpected(where + ".error: unknown kind");
      }
      answers.push_back(std::move(answer));
    } catch (const nlohmann::json::exception& error) {
      return tl::unexpected(where + ": " + error.what());
    }
  }
  return answers;
}

}  // namespace fixpoint::agent
