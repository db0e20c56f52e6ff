#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "engine/counter_rng.h"
#include "engine/detail/delivery.h"
#include "engine/detail/engine_loop.h"
#include "engine/detail/inbox.h"
#include "engine/detail/kv_budget.h"
#include "engine/sampler.h"

namespace fixpoint::engine {
namespace {

SubmitError invalid(std::string field, std::string detail) {
  return {SubmitError::Kind::invalid, std::move(field), std::move(detail)};
}

bool all_below(std::span<const TokenId> tokens, std::int64_t size) {
  return std::all_of(tokens.begin(), tokens.end(), [size](TokenId token) { return token >= 0 && token < size; });
}

constexpr int max_samples = 128;
constexpr std::size_t max_stops = 64;
constexpr std::size_t max_stop_bytes = 1024;
constexpr std::chrono::hours max_pin_ttl{24};

std::optional<SubmitError> check_fields(const Request& request, std::int64_t vocab_size) {
  if (request.prompt.empty()) return invalid("prompt", "must hold at least one token");
  if (!all_below(request.prompt, vocab_size)) return invalid("prompt", "holds a token id outside the vocabulary");
  if (!all_below(request.prediction, vocab_size)) return invalid("prediction", "holds a token id outside the vocabulary");
  if (!all_below(request.stop_tokens, vocab_size)) return invalid("stop_tokens", "holds a token id outside the vocabulary");
  if (request.max_tokens && *request.max_tokens < 1) return invalid("max_tokens", "must be at least 1");
  if (request.min_tokens < 0 || (request.max_tokens && request.min_tokens > *request.max_tokens)) {
    return invalid("min_tokens", "must be in 0..max_tokens");
  }
  if (request.n < 1 || request.n > max_samples) return invalid("n", "must be in 1.." + std::to_string(max_samples));
  if (request.priority < -100 || request.priority > 100) return invalid("priority", "must be in -100..100");
  if (request.pin_ttl.count() < 0 || request.pin_ttl > max_pin_ttl) return invalid("pin_ttl", "must be between 0 and 24 hours");
  if (request.stop_strings.size() > max_stops || request.stop_tokens.size() > max_stops) {
    return invalid("stop", "more than " + std::to_string(max_stops) + " of them");
  }
  for (const std::string& stop : request.stop_strings) {
    if (stop.empty() || stop.size() > max_stop_bytes) {
      return invalid("stop", "each must be 1.." + std::to_string(max_stop_bytes) + " bytes long");
    }
  }
  return check(request.sampling, vocab_size);
}

std::optional<EngineError> check_options(const EngineOptions& options) {
  if (options.block_size < 1 || options.block_size > 256) return EngineError{"block_size", "must be in 1..256"};
  if (options.max_running < 1) return EngineError{"max_running", "must be at least 1"};
  if (options.max_step_tokens < 1) return EngineError{"max_step_tokens", "must be at least 1"};
  if (options.max_queued_requests < 1) return EngineError{"max_queued_requests", "must be at least 1"};
  if (options.ageing_steps < 1) return EngineError{"ageing_steps", "must be at least 1"};
  if (!(options.kv_memory_fraction > 0.0 && options.kv_memory_fraction <= 1.0)) {
    return EngineError{"kv_memory_fraction", "must be in (0, 1]"};
  }
  if (!(options.max_pinned_fraction >= 0.0 && options.max_pinned_fraction <= 1.0)) {
    return EngineError{"max_pinned_fraction", "must be in [0, 1]"};
  }
  return std::nullopt;
}

tl::expected<int, EngineError> num_blocks(const StepModel& model, const EngineOptions& options) {
  const std::size_t bytes_per_block = model.kv_bytes_per_block(options.block_size, options.kv_type);
  const auto budget = options.kv_memory_bytes.value_or(
      static_cast<std::size_t>(static_cast<double>(detail::host_memory_left(model).value_or(0)) * options.kv_memory_fraction));
  if (const auto blocks = detail::blocks_of_budget(model, options, budget)) return *blocks;
  return tl::unexpected(EngineError{"kv_memory_bytes", std::to_string(budget) + " bytes do not hold one block of " +
                                                           std::to_string(bytes_per_block) + " bytes"});
}

}  // namespace

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::cancelled: return "cancelled";
    case FinishReason::error: return "error";
  }
  return "unknown";
}

std::size_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::size_t kib = 0;
  std::string unit;
  while (meminfo >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(meminfo, unit);
  }
  return 0;
}

RequestHandle::RequestHandle(std::uint64_t id, std::uint64_t seed, std::shared_ptr<detail::Inbox> inbox,
                             std::shared_ptr<detail::Delivery> delivery)
    : id_(id), seed_(seed), inbox_(std::move(inbox)), delivery_(std::move(delivery)) {}

RequestHandle::RequestHandle(RequestHandle&& other) noexcept
    : id_(other.id_), seed_(other.seed_), inbox_(std::move(other.inbox_)), delivery_(std::move(other.delivery_)) {}

RequestHandle& RequestHandle::operator=(RequestHandle&& other) noexcept {
  if (this == &other) return *this;
  drop();
  id_ = other.id_;
  seed_ = other.seed_;
  inbox_ = std::move(other.inbox_);
  delivery_ = std::move(other.delivery_);
  return *this;
}

RequestHandle::~RequestHandle() { drop(); }

void RequestHandle::drop() noexcept {
  const auto delivery = std::move(delivery_);
  const auto inbox = std::move(inbox_);
  if (delivery) delivery->close();
  if (inbox) inbox->post(detail::CancelRequest{id_});
}

void RequestHandle::cancel() {
  if (inbox_) inbox_->post(detail::CancelRequest{id_});
}

Pin::Pin(std::uint64_t id, std::shared_ptr<detail::Inbox> inbox) : id_(id), inbox_(std::move(inbox)) {}

Pin::Pin(Pin&& other) noexcept : id_(other.id_), inbox_(std::move(other.inbox_)) {}

Pin& Pin::operator=(Pin&& other) noexcept {
  if (this == &other) return *this;
  drop();
  id_ = other.id_;
  inbox_ = std::move(other.inbox_);
  return *this;
}

Pin::~Pin() { drop(); }

void Pin::drop() noexcept {
  const auto inbox = std::move(inbox_);
  if (inbox) inbox->post(detail::EndPin{id_});
}

struct Engine::Impl {
  Impl(std::unique_ptr<StepModel> step_model, Tokenizer vocabulary, const EngineOptions& engine_options, int blocks)
      : model(std::move(step_model)),
        tokenizer(std::move(vocabulary)),
        options(engine_options),
        num_blocks(blocks),
        max_tokens(std::min(model->context_length(), static_cast<std::int64_t>(blocks) * options.block_size)),
        first_seed((static_cast<std::uint64_t>(std::random_device{}()) << 32U) | std::random_device{}()),
        loop(*model, tokenizer, options, blocks, inbox),
        thread([this](const std::stop_token& stop) { loop.run(stop); }) {}

  [[nodiscard]] tl::expected<std::int64_t, SubmitError> total_tokens(const Request& request) const;

  const std::unique_ptr<StepModel> model;
  const Tokenizer tokenizer;
  const EngineOptions options;
  const int num_blocks;
  const std::int64_t max_tokens;
  const std::uint64_t first_seed;
  const std::shared_ptr<detail::Inbox> inbox = std::make_shared<detail::Inbox>();
  std::atomic<std::uint64_t> next_id{1};
  detail::EngineLoop loop;
  std::jthread thread;  // last: it ends before what it uses
};

/// Prompt and output at most; an error when that can't be.
tl::expected<std::int64_t, SubmitError> Engine::Impl::total_tokens(const Request& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (prompt >= model->context_length()) {
    return tl::unexpected(SubmitError{SubmitError::Kind::too_long, "prompt",
                                      std::to_string(prompt) + " tokens leave no room for output in a context of " +
                                          std::to_string(model->context_length())});
  }
  const std::int64_t wanted = request.max_tokens ? std::min(prompt + *request.max_tokens, model->context_length()) : max_tokens;
  if (wanted > max_tokens || prompt >= max_tokens) {
    return tl::unexpected(SubmitError{SubmitError::Kind::never_fits, "prompt",
                                      std::to_string(std::max(wanted, prompt + 1)) + " tokens with the output, but the KV memory holds " +
                                          std::to_string(max_tokens)});
  }
  return wanted;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() = default;

tl::expected<std::unique_ptr<Engine>, EngineError> Engine::create(std::unique_ptr<StepModel> model, Tokenizer tokenizer,
                                                                  const EngineOptions& options) {
  if (auto error = check_options(options)) return tl::unexpected(std::move(*error));
  if (model->vocab_size() < tokenizer.size()) {
    return tl::unexpected(EngineError{"tokenizer", "has " + std::to_string(tokenizer.size()) + " tokens, but the model only " +
                                                       std::to_string(model->vocab_size())});
  }
  const auto blocks = num_blocks(*model, options);
  if (!blocks) return tl::unexpected(blocks.error());
  model->allocate_kv(*blocks, options.block_size, options.kv_type);
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(std::move(model), std::move(tokenizer), options, *blocks)));
}

tl::expected<RequestHandle, SubmitError> Engine::submit(Request request, OnOutput on_output) {
  if (auto error = check_fields(request, impl_->tokenizer.size())) return tl::unexpected(std::move(*error));
  const auto total = impl_->total_tokens(request);
  if (!total) return tl::unexpected(total.error());
  if (request.prediction.size() > static_cast<std::size_t>(*total)) {
    request.prediction.resize(static_cast<std::size_t>(*total));
    request.prediction.shrink_to_fit();
  }
  auto& in_flight = impl_->loop.requests_in_flight;
  if (in_flight.fetch_add(1, std::memory_order_relaxed) >= impl_->options.max_queued_requests) {
    in_flight.fetch_sub(1, std::memory_order_relaxed);
    return tl::unexpected(SubmitError{SubmitError::Kind::queue_full, {}, "too many requests are waiting"});
  }
  const std::uint64_t id = impl_->next_id.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t seed = request.sampling.seed.value_or(mix64(impl_->first_seed + id));
  auto delivery = std::make_shared<detail::Delivery>(std::move(on_output));
  const bool posted = impl_->inbox->post(detail::NewRequest{.id = id,
                                                            .request = std::move(request),
                                                            .seed = seed,
                                                            .max_total_tokens = *total,
                                                            .delivery = delivery,
                                                            .submitted = detail::Clock::now()});
  if (!posted) return tl::unexpected(SubmitError{SubmitError::Kind::stopped, {}, "the engine is shutting down"});
  return RequestHandle(id, seed, impl_->inbox, std::move(delivery));
}

tl::expected<Completion, SubmitError> Engine::generate(Request request) {
  std::mutex mutex;
  std::condition_variable changed;
  Completion completion;
  completion.samples.resize(static_cast<std::size_t>(std::clamp(request.n, 0, max_samples)));
  std::size_t unfinished = completion.samples.size();
  const auto collect = [&](Output output) {
    const std::lock_guard lock(mutex);
    CompletedSample& sample = completion.samples[static_cast<std::size_t>(output.sample)];
    sample.text += output.text;
    sample.tokens.insert(sample.tokens.end(), output.tokens.begin(), output.tokens.end());
    sample.logprobs.insert(sample.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
    if (!output.finish) return;
    sample.finish = std::move(*output.finish);
    if (--unfinished == 0) changed.notify_one();
  };
  const auto handle = submit(std::move(request), collect);
  if (!handle) return tl::unexpected(handle.error());
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return unfinished == 0; });
  return completion;
}

Pin Engine::pin(std::string tenant, std::span<const TokenId> tokens, std::chrono::milliseconds ttl) {
  const std::uint64_t id = impl_->next_id.fetch_add(1, std::memory_order_relaxed);
  const auto lifetime = std::clamp<std::chrono::milliseconds>(ttl, std::chrono::milliseconds{0}, max_pin_ttl);
  impl_->inbox->post(detail::NewPin{.id = id,
                                    .tenant = std::move(tenant),
                                    .tokens = {tokens.begin(), tokens.end()},
                                    .expiry = detail::Clock::now() + lifetime});
  return Pin(id, impl_->inbox);
}

void Engine::end_session(std::string tenant, std::string session) {
  impl_->inbox->post(detail::EndSession{.tenant = std::move(tenant), .session = std::move(session)});
}

EngineStats Engine::stats() const { return impl_->loop.stats(); }
const Tokenizer& Engine::tokenizer() const { return impl_->tokenizer; }
std::int64_t Engine::max_sequence_tokens() const { return impl_->max_tokens; }
const EngineOptions& Engine::options() const { return impl_->options; }

}  // namespace fixpoint::engine
