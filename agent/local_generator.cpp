#include "agent/local_generator.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "agent/detail/utf8.h"
#include "engine/engine.h"

namespace fixpoint::agent {
namespace {

using Clock = std::chrono::steady_clock;
using engine::TokenId;
using Kind = GenerateError::Kind;

constexpr std::size_t kConversationsPerSession = 24;
constexpr std::size_t kSessions = 512;
constexpr std::int64_t kMostTokens = 1 << 20;

bool same(const Message& a, const Message& b) { return a.role == b.role && a.content == b.content; }

/// A conversation up to an answer, and the very tokens it was read and written in. An answer's text, tokenised again, need
/// not give the tokens that the model wrote; without them the prefix cache would end where the first answer begins.
struct Conversation {
  std::vector<Message> messages;  ///< the last one is the answer
  std::vector<TokenId> tokens;
};

/// What is remembered of sessions; bounded, the oldest goes first. Thread-safe.
class Memory {
 public:
  void add(const std::string& session, Conversation conversation) {
    const std::scoped_lock lock(mutex_);
    if (!sessions_.contains(session)) {
      order_.push_back(session);
      if (order_.size() > kSessions) {
        sessions_.erase(order_.front());
        order_.pop_front();
      }
    }
    std::deque<Conversation>& kept = sessions_[session];
    kept.push_back(std::move(conversation));
    if (kept.size() > kConversationsPerSession) kept.pop_front();
  }

  /// The longest remembered conversation that `messages` begins with.
  std::optional<Conversation> find(const std::string& session, const std::vector<Message>& messages) const {
    const std::scoped_lock lock(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return std::nullopt;
    const Conversation* best = nullptr;
    for (const Conversation& it : found->second) {
      const bool begins = it.messages.size() < messages.size() &&
                          std::equal(it.messages.begin(), it.messages.end(), messages.begin(), same);
      if (begins && (best == nullptr || it.messages.size() >= best->messages.size())) best = &it;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  void erase(std::string_view session) {
    const std::scoped_lock lock(mutex_);
    sessions_.erase(std::string(session));
    std::erase(order_, session);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::deque<Conversation>, std::less<>> sessions_;
  std::deque<std::string> order_;
};

/// One sample of the engine, gathered on the caller's thread. Bounded by the request's tokens.
class Sample {
 public:
  void push(engine::Output output) {
    const std::scoped_lock lock(mutex_);
    text_ += output.text;
    tokens_.insert(tokens_.end(), output.tokens.begin(), output.tokens.end());
    if (output.finish) finish_ = std::move(output.finish);
    changed_.notify_one();
  }

  struct News {
    std::string text;
    std::optional<engine::Finish> finish;
  };
  /// What is new; nothing when stopped or when the deadline is over.
  std::optional<News> wait(const std::stop_token& stop, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const bool arrived = changed_.wait_until(lock, stop, deadline, [this] { return !text_.empty() || finish_.has_value(); });
    if (!arrived) return std::nullopt;
    return News{std::exchange(text_, {}), finish_};
  }
  std::vector<TokenId> tokens() const {
    const std::scoped_lock lock(mutex_);
    return tokens_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string text_;
  std::vector<TokenId> tokens_;
  std::optional<engine::Finish> finish_;
};

/// What was written so far, by one request to the engine or by two.
struct Answer {
  std::vector<TokenId> prompt;
  std::vector<TokenId> tokens;
  std::string text;
  Usage usage;
  bool whole = true;  ///< the tokens are those of the text
};

class LocalGenerator final : public Generator {
 public:
  LocalGenerator(engine::Engine& engine, LocalGeneratorOptions options)
      : engine_(&engine), options_(std::move(options)), stop_tokens_(engine::stop_tokens(options_.format, engine.tokenizer())) {}

  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text,
                                                   std::stop_token stop) override {
    auto prompt = prompt_tokens(request);
    if (!prompt) return tl::unexpected(GenerateError{.kind = Kind::refused, .detail = prompt.error()});
    const Clock::time_point deadline = Clock::now() + request.timeout;
    Answer answer{.prompt = *std::move(prompt)};
    if (options_.starts_programs && request.program_start) {
      auto opened = write(request, request.program_start->fence, answer, on_text, stop, deadline);
      if (!opened) return tl::unexpected(std::move(opened.error()));
      if (!opened->met_fence) return finished(request, std::move(answer), opened->reason);
      start_program(*request.program_start, answer, on_text);
    }
    auto ended = write(request, {}, answer, on_text, stop, deadline);
    if (!ended) return tl::unexpected(std::move(ended.error()));
    return finished(request, std::move(answer), ended->reason);
  }

  std::string name() const override { return options_.name; }
  void release(std::string_view session) override {
    memory_.erase(session);
    engine_->end_session(options_.tenant, std::string(session));
  }

 private:
  tl::expected<std::vector<TokenId>, std::string> prompt_tokens(const GenerateRequest& request) const {
    auto whole = engine::render_chat(options_.format, engine_->tokenizer(), request.messages);
    if (!whole) return whole;
    std::optional<Conversation> known = memory_.find(request.session, request.messages);
    if (!known) return whole;
    // The same conversation as a fresh rendering has it: what follows it there also follows the remembered tokens.
    const auto begin = engine::render_chat(options_.format, engine_->tokenizer(), known->messages);
    if (!begin || begin->size() >= whole->size() || !std::equal(begin->begin(), begin->end(), whole->begin())) return whole;
    std::vector<TokenId> tokens = std::move(known->tokens);
    tokens.insert(tokens.end(), whole->begin() + static_cast<std::ptrdiff_t>(begin->size()), whole->end());
    return tokens;
  }

  /// Goes on with `answer`: the prompt is read from the prefix cache, what was written is a part of it.
  engine::Request engine_request(const GenerateRequest& request, const Answer& answer, const std::string& fence) const {
    engine::Request out;
    out.prompt = answer.prompt;
    out.prompt.insert(out.prompt.end(), answer.tokens.begin(), answer.tokens.end());
    out.sampling.temperature = static_cast<float>(request.temperature);
    out.sampling.top_p = static_cast<float>(request.top_p);
    out.sampling.seed = request.seed + answer.tokens.size();  // other random numbers than before
    out.max_tokens = static_cast<int>(std::min(left(request, answer), kMostTokens));
    if (!fence.empty()) out.stop_strings = {fence};
    out.stop_tokens = stop_tokens_;
    out.tenant = options_.tenant;
    out.priority = options_.priority;
    out.pin_ttl = options_.pin;
    out.session = request.session;
    if (!request.prediction.empty()) out.prediction = tokens_of(request.prediction);
    return out;
  }

  std::vector<TokenId> tokens_of(std::string_view text) const {
    return engine_->tokenizer().encode(text, engine::Tokenizer::ControlTokens::as_text);
  }

  static std::int64_t left(const GenerateRequest& request, const Answer& answer) {
    return request.max_tokens - static_cast<std::int64_t>(answer.tokens.size());
  }

  static GenerateError submit_error(const engine::SubmitError& error) {
    using From = engine::SubmitError::Kind;
    const Kind kind = error.kind == From::too_long || error.kind == From::never_fits ? Kind::too_long
                      : error.kind == From::invalid                                  ? Kind::refused
                                                                                     : Kind::unavailable;
    return {.kind = kind, .detail = error.message()};
  }

  /// How a request to the engine ended.
  struct End {
    Finish reason = Finish::length;
    bool met_fence = false;
  };

  /// Lets the engine write on, up to `fence` where there is one (it is not part of the text), and adds what it wrote.
  tl::expected<End, GenerateError> write(const GenerateRequest& request, const std::string& fence, Answer& answer, const OnText& on_text,
                                         const std::stop_token& stop, Clock::time_point deadline) {
    if (left(request, answer) <= 0 && !answer.tokens.empty()) return End{};
    Sample sample;
    auto handle = engine_->submit(engine_request(request, answer, fence), [&sample](engine::Output output) { sample.push(std::move(output)); });
    const auto failed = [&](GenerateError error) {
      error.partial = answer.text;
      error.usage = answer.usage;
      if (handle) {
        *handle = engine::RequestHandle();  // cancels; after this the callback does not run
        error.usage.prompt_tokens = static_cast<std::int64_t>(answer.prompt.size());
      }
      error.usage.completion_tokens = static_cast<std::int64_t>(answer.tokens.size() + sample.tokens().size());
      return tl::unexpected(std::move(error));
    };
    if (!handle) {
      GenerateError refused = submit_error(handle.error());
      if (refused.kind == Kind::too_long && !answer.tokens.empty()) return End{};  // the start took the rest of the context
      return failed(std::move(refused));
    }
    while (true) {
      std::optional<Sample::News> news = sample.wait(stop, deadline);
      if (stop.stop_requested()) return failed({.kind = Kind::cancelled, .detail = "cancelled"});
      if (!news) return failed({.kind = Kind::timeout, .detail = "not finished in time"});
      const std::size_t room = request.max_bytes - std::min(request.max_bytes, answer.text.size());
      const std::size_t bytes = detail::floor_character(news->text, std::min(room, news->text.size()));
      const bool cut = bytes < news->text.size();
      news->text.resize(bytes);
      answer.text += news->text;
      if (on_text && !news->text.empty()) on_text(news->text);
      if (!news->finish && !cut) continue;
      if (cut) *handle = engine::RequestHandle();
      if (news->finish && news->finish->reason == engine::FinishReason::error) {
        return failed({.kind = Kind::unavailable, .detail = news->finish->error});
      }
      if (news->finish && news->finish->reason == engine::FinishReason::cancelled) {
        return failed({.kind = Kind::unavailable, .detail = "the engine was shut down"});
      }
      return add(answer, sample.tokens(), cut ? std::nullopt : news->finish);
    }
  }

  /// `finish` is nothing where the text was cut: what was written is more than the text.
  static End add(Answer& answer, std::vector<TokenId> written, const std::optional<engine::Finish>& finish) {
    if (answer.usage.prompt_tokens == 0) {  // of the first request: those after it begin with its tokens
      answer.usage.prompt_tokens = static_cast<std::int64_t>(answer.prompt.size());
      answer.usage.cached_tokens = finish ? finish->usage.cached_tokens : 0;
    }
    answer.whole = finish.has_value();
    answer.usage.completion_tokens = static_cast<std::int64_t>(answer.tokens.size() + written.size());
    // The token that ended the turn is part of what follows it.
    const auto* token = finish ? std::get_if<TokenId>(&finish->stop) : nullptr;
    if (token != nullptr && !written.empty() && written.back() == *token) written.pop_back();
    answer.tokens.insert(answer.tokens.end(), written.begin(), written.end());
    if (!finish || finish->reason != engine::FinishReason::stop) return {};
    return {.reason = Finish::stop, .met_fence = std::holds_alternative<std::string>(finish->stop)};
  }

  /// The answer has met `start.fence`, which its text lacks. Its last token may hold more than the fence: then the answer's
  /// text is tokenised again.
  void start_program(const ProgramStart& start, Answer& answer, const OnText& on_text) const {
    answer.text += start.fence;
    if (engine_->tokenizer().decode(answer.tokens) != answer.text) answer.tokens = tokens_of(answer.text);
    const std::vector<TokenId> given = tokens_of(start.text);
    answer.text += start.text;
    answer.tokens.insert(answer.tokens.end(), given.begin(), given.end());
    if (on_text) on_text(start.fence + start.text);
  }

  Generation finished(const GenerateRequest& request, Answer answer, Finish reason) {
    Generation generation{.text = answer.text, .finish = reason, .usage = answer.usage};
    if (!answer.whole) return generation;
    Conversation conversation{.messages = request.messages, .tokens = std::move(answer.prompt)};
    conversation.messages.push_back({Role::assistant, std::move(answer.text)});
    conversation.tokens.insert(conversation.tokens.end(), answer.tokens.begin(), answer.tokens.end());
    memory_.add(request.session, std::move(conversation));
    return generation;
  }

  engine::Engine* engine_;
  LocalGeneratorOptions options_;
  std::vector<TokenId> stop_tokens_;
  Memory memory_;
};

}  // namespace

std::unique_ptr<Generator> make_local_generator(engine::Engine& engine, LocalGeneratorOptions options) {
  return std::make_unique<LocalGenerator>(engine, std::move(options));
}

}  // namespace fixpoint::agent
