#include "server/completion.h"

#include <mutex>

#include "engine/language_model.h"
#include "server/event_log.h"
#include "server/metrics.h"

namespace fixpoint::server {
namespace {

using engine::TokenId;
using std::chrono::duration;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ApiError busy_error(const Busy& busy) {
  return {.status = 429, .message = busy.detail, .code = busy.limit, .retry_after = busy.retry_after};
}

ApiError submit_error(const engine::SubmitError& error) {
  using Kind = engine::SubmitError::Kind;
  switch (error.kind) {
    case Kind::invalid: return {.message = error.message(), .param = error.field};
    case Kind::too_long:
    case Kind::never_fits: return {.message = error.message(), .param = error.field, .code = "context_length_exceeded"};
    case Kind::queue_full: return {.status = 429, .message = error.message(), .code = "queue_full", .retry_after = std::chrono::seconds(1)};
    case Kind::stopped: return {.status = 503, .message = error.message(), .code = "stopped"};
  }
  return {.status = 500, .message = error.message()};
}

struct Prompts {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::string> echoes;
};

tl::expected<Prompts, ApiError> render(const CompletionCall& call, const engine::LanguageModel& model) {
  Prompts out;
  if (call.chat) {
    auto tokens = model.chat_prompt(call.messages);
    if (!tokens) return tl::unexpected(ApiError{.message = "messages: " + tokens.error(), .param = "messages"});
    out.tokens.push_back(*std::move(tokens));
    return out;
  }
  for (const Prompt& prompt : call.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    out.tokens.push_back(text != nullptr ? model.plain_prompt(*text, engine::Tokenizer::ControlTokens::as_text) : std::get<std::vector<TokenId>>(prompt));
    if (out.tokens.back().empty()) return tl::unexpected(ApiError{.message = "prompt: must not be empty", .param = "prompt"});
    if (call.echo) out.echoes.push_back(text != nullptr ? *text : model.tokenizer().decode(out.tokens.back()));
  }
  return out;
}

}  // namespace

/// What the engine's thread hands over. Bounded by the tokens that the request may have.
class Completion::Inbox {
 public:
  explicit Inbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void push(Item item) {
    bool was_empty = false;
    {
      const std::scoped_lock lock(mutex_);
      was_empty = items_.empty();
      items_.push_back(std::move(item));
    }
    if (was_empty) wake_();
  }
  std::vector<Item> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(items_, {});
  }

 private:
  std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<Item> items_;  // guarded by mutex_
};

Completion::Completion(const Services& services, const HttpRequest& request, const CompletionCall& call, std::vector<std::string> echoes)
    : services_(&services), who_(request.who), session_(request.id), trace_id_(request.trace.trace_id), arrived_(request.arrived), streams_(call.stream),
      format_(call.chat, {.id = (call.chat ? "chatcmpl-" : "cmpl-") + request.id, .model = services.model_id, .created = seconds_now()},
              call.include_usage, services.model->tokenizer(), std::move(echoes), call.n) {}

Completion::~Completion() {
  handles_.clear();
  if (told_end_) return;
  services_->metrics->counter("request_success_total", "Completions that ended, by the reason.", {{"finished_reason", "abort"}}).add();
  services_->log->write("completion_aborted", {{"request", session_}, {"tenant", who_.tenant}, {"token", who_.token_id}, {"trace", trace_id_}});
}

tl::expected<std::unique_ptr<Completion>, ApiError> Completion::start(const CompletionCall& call, const Services& services,
                                                                      const HttpRequest& request, std::function<void()> wake) {
  if (services.model == nullptr) {
    return tl::unexpected(ApiError{.status = 501, .message = "this server's model runs elsewhere; it offers no completions itself"});
  }
  if (!call.model.empty() && call.model != services.model_id) {
    return tl::unexpected(ApiError{.status = 404, .message = "the model '" + call.model + "' does not exist here; there is '" + services.model_id + "'",
                                   .param = "model", .code = "model_not_found"});
  }
  if (services.draining) return tl::unexpected(ApiError{.status = 503, .message = "the server is shutting down", .code = "draining", .retry_after = std::chrono::seconds(5)});
  auto place = services.admission->begin(request.who);
  if (!place) return tl::unexpected(busy_error(place.error()));
  auto prompts = render(call, *services.model);
  if (!prompts) return tl::unexpected(prompts.error());

  std::unique_ptr<Completion> it(new Completion(services, request, call, std::move(prompts->echoes)));
  it->place_ = *std::move(place);
  it->inbox_ = std::make_shared<Inbox>(std::move(wake));
  auto submitted = it->submit(call, std::move(prompts->tokens));
  if (!submitted) {
    it->told_end_ = true;  // it never began
    return tl::unexpected(submitted.error());
  }
  return it;
}

tl::expected<void, ApiError> Completion::submit(const CompletionCall& call, std::vector<std::vector<TokenId>> prompts) {
  engine::LanguageModel& model = *services_->model;
  const int n = call.n;
  unfinished_ = static_cast<int>(prompts.size()) * n;
  last_made_.assign(static_cast<std::size_t>(unfinished_), arrived_);
  std::vector<TokenId> prediction;
  if (!call.prediction.empty()) prediction = model.tokenizer().encode(call.prediction, engine::Tokenizer::ControlTokens::as_text);
  const auto longest = static_cast<std::size_t>(model.engine().max_sequence_tokens());
  if (prediction.size() > longest) prediction.resize(longest);  // each prompt's request gets a copy
  int first_choice = 0;
  for (std::vector<TokenId>& prompt : prompts) {
    engine::Request request{.prompt = std::move(prompt), .sampling = call.sampling, .max_tokens = call.max_tokens, .min_tokens = call.min_tokens,
                            .stop_strings = call.stop, .stop_tokens = call.stop_tokens, .ignore_eos = call.ignore_eos, .n = n,
                            .tenant = who_.tenant, .priority = call.priority, .prediction = prediction};
    if (call.chat && !call.ignore_eos) {
      for (const TokenId token : model.chat_stop_tokens()) request.stop_tokens.push_back(token);
    }
    services_->metrics->histogram("request_prompt_tokens", "Tokens of a completion's prompt.", kTokenCounts).observe(static_cast<double>(request.prompt.size()));
    auto handle = model.engine().submit(std::move(request), [inbox = inbox_, first_choice](engine::Output output) {
      const int choice = first_choice + output.sample;
      inbox->push({choice, std::move(output), Clock::now()});
    });
    if (!handle) return tl::unexpected(submit_error(handle.error()));
    handles_.push_back(*std::move(handle));
    first_choice += n;
  }
  return {};
}

void Completion::observe(const Item& item) {
  Metrics& metrics = *services_->metrics;
  Clock::time_point& last = last_made_[static_cast<std::size_t>(item.choice)];
  if (!item.output.tokens.empty()) {
    const double waited = duration<double>(item.made - last).count();
    if (last == arrived_) {
      metrics.histogram("time_to_first_token_seconds", "From a request's arrival to its first token.", kLatencySeconds).observe(waited);
    } else {
      const std::size_t tokens = item.output.tokens.size();  // several where drafts were right: each counts
      metrics.histogram("inter_token_latency_seconds", "Between two tokens of a completion.", kLatencySeconds)
          .observe(waited / static_cast<double>(tokens), tokens);
    }
    last = item.made;
  }
  if (!item.output.finish) return;
  const engine::Finish& finish = *item.output.finish;
  metrics.counter("request_success_total", "Completions that ended, by the reason.", {{"finished_reason", std::string(engine::to_string(finish.reason))}}).add();
  metrics.histogram("e2e_request_latency_seconds", "From a request's arrival to its end.", kLatencySeconds).observe(duration<double>(item.made - arrived_).count());
  metrics.histogram("request_queue_time_seconds", "From submission to the first step.", kLatencySeconds).observe(duration<double>(finish.timings.queued).count());
  metrics.histogram("request_generation_tokens", "Tokens that a completion wrote.", kTokenCounts).observe(finish.usage.completion_tokens);
  services_->admission->spend(who_, finish.usage.completion_tokens, std::chrono::milliseconds(0));
}

void Completion::finish(Piece& piece) {
  piece.finished = true;
  told_end_ = true;
  const ApiError error{.status = shut_down_ ? 503 : 500, .message = shut_down_ ? "the server was shut down" : failure_, .code = shut_down_ ? "stopped" : "engine"};
  const bool failed = shut_down_ || !failure_.empty();
  if (streams_) {
    piece.bytes += failed ? CompletionFormat::error_event(error) : format_.last_events();
  } else {
    piece.bytes = failed ? error.body() : format_.whole();
    piece.status = failed ? error.status : 200;
  }
  const CompletionFormat::Totals& totals = format_.totals();
  services_->log->write("completion", {{"request", session_}, {"tenant", who_.tenant}, {"token", who_.token_id}, {"trace", trace_id_},
                                       {"prompt_tokens", totals.prompt_tokens}, {"cached_tokens", totals.cached_tokens},
                                       {"completion_tokens", totals.completion_tokens}, {"failed", failed},
                                       {"seconds", duration<double>(Clock::now() - arrived_).count()}});
}

Completion::Piece Completion::take() {
  Piece piece;
  if (told_end_) {
    piece.finished = true;
    return piece;
  }
  for (Item& item : inbox_->take()) {
    observe(item);
    if (item.output.finish) {
      --unfinished_;
      if (item.output.finish->reason == engine::FinishReason::error) failure_ = item.output.finish->error;
      if (item.output.finish->reason == engine::FinishReason::cancelled) shut_down_ = true;
    }
    if (streams_) {
      piece.bytes += format_.events(item.choice, item.output);
      piece.made.push_back(item.made);
    } else {
      format_.keep(item.choice, std::move(item.output));
    }
  }
  if (unfinished_ == 0 || shut_down_ || !failure_.empty()) finish(piece);
  return piece;
}

}  // namespace fixpoint::server
