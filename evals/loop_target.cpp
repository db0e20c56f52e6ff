#include "evals/loop_target.h"

#include <condition_variable>
#include <mutex>
#include <optional>

namespace fixpoint::evals {
namespace {

using Clock = std::chrono::steady_clock;

/// One answer of the engine, gathered on the asking thread.
class Gathered {
 public:
  void push(const engine::Output& output) {
    const std::scoped_lock lock(mutex_);
    if (!output.tokens.empty()) answer_.arrivals.push_back(Clock::now());
    if (output.finish) finish_ = *output.finish;
    if (output.finish) changed_.notify_one();
  }
  /// Nothing where stopped.
  std::optional<engine::Finish> wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return finish_.has_value(); });
    return finish_;
  }
  LoopAnswer take() {
    const std::scoped_lock lock(mutex_);
    return std::move(answer_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  LoopAnswer answer_;
  std::optional<engine::Finish> finish_;
};

class EngineTarget final : public LoopTarget {
 public:
  explicit EngineTarget(engine::LanguageModel& model) : model_(model) {}

  tl::expected<LoopAnswer, std::string> answer(const LoopQuestion& question, std::stop_token stop) override {
    auto tokens = tokens_of(question);
    if (!tokens) return tl::unexpected(tokens.error());
    engine::Request request;
    request.prompt = *std::move(tokens);
    request.sampling.temperature = 0;
    request.max_tokens = static_cast<int>(question.tokens);
    request.ignore_eos = true;
    request.session = question.session;
    request.pin_ttl = std::chrono::seconds(120);  // as the loop keeps a session's prefix while the sandbox runs
    if (!question.prediction.empty()) {
      request.prediction = model_.tokenizer().encode(question.prediction, engine::Tokenizer::ControlTokens::as_text);
    }
    Gathered gathered;
    auto handle = model_.engine().submit(std::move(request), [&gathered](const engine::Output& output) { gathered.push(output); });
    if (!handle) return tl::unexpected(handle.error().message());
    const auto finish = gathered.wait(stop);
    *handle = engine::RequestHandle();  // cancels what is not finished; then the callback does not run
    if (!finish) return tl::unexpected(std::string("cancelled"));
    if (finish->reason == engine::FinishReason::error) return tl::unexpected(finish->error);
    if (finish->reason == engine::FinishReason::cancelled) return tl::unexpected(std::string("the engine was shut down"));
    LoopAnswer answer = gathered.take();
    answer.usage = {.prompt_tokens = finish->usage.prompt_tokens,
                    .cached_tokens = finish->usage.cached_tokens,
                    .completion_tokens = finish->usage.completion_tokens};
    return answer;
  }

  void end(const std::string& session) override { model_.engine().end_session({}, session); }
  std::string name() const override { return model_.description(); }

 private:
  tl::expected<std::vector<engine::TokenId>, std::string> tokens_of(const LoopQuestion& question) const {
    if (const auto* messages = std::get_if<std::vector<agent::Message>>(&question.prompt)) return model_.chat_prompt(*messages);
    return model_.plain_prompt(std::get<std::string>(question.prompt), engine::Tokenizer::ControlTokens::as_text);
  }

  engine::LanguageModel& model_;
};

class ServerTarget final : public LoopTarget {
 public:
  ServerTarget(std::unique_ptr<agent::OpenAiStream> stream, std::chrono::milliseconds timeout) : stream_(std::move(stream)), timeout_(timeout) {}

  tl::expected<LoopAnswer, std::string> answer(const LoopQuestion& question, std::stop_token stop) override {
    const agent::StreamRequest request{.prompt = question.prompt, .tokens = question.tokens, .prediction = question.prediction, .timeout = timeout_};
    auto answer = stream_->ask(request, stop);
    if (!answer) {
      const std::string& detail = answer.error().detail;
      return tl::unexpected(detail.empty() ? std::string(to_string(answer.error().kind)) : detail);
    }
    if (answer->arrivals.empty()) return tl::unexpected(std::string("the answer did not come as a stream of events"));
    return LoopAnswer{.arrivals = std::move(answer->arrivals), .usage = answer->generation.usage};
  }

  std::string name() const override { return stream_->name(); }
  std::string note() const override {
    return stream_->refuses_prediction() ? "the server refuses the field 'prediction': it was left out" : std::string();
  }

 private:
  std::unique_ptr<agent::OpenAiStream> stream_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::unique_ptr<LoopTarget> make_engine_target(engine::LanguageModel& model) { return std::make_unique<EngineTarget>(model); }

tl::expected<std::unique_ptr<LoopTarget>, std::string> make_server_target(agent::OpenAiOptions options, std::chrono::milliseconds timeout) {
  options.idle_timeout = timeout;  // a server may be silent for as long as it computes
  auto stream = agent::make_openai_stream(std::move(options));
  if (!stream) return tl::unexpected(stream.error());
  return std::make_unique<ServerTarget>(*std::move(stream), timeout);
}

}  // namespace fixpoint::evals
