#include "tests/engine/serving/served.h"

#include <stdexcept>

#include "engine/counter_rng.h"
#include "tests/engine/models/test_vocabulary.h"

namespace fixpoint::engine::testing {

Tokenizer test_tokenizer() {
  auto tokenizer = Tokenizer::build(test_models::byte_level_vocabulary(kVocabulary), "test vocabulary");
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message());
  return std::move(*tokenizer);
}

Served serve(int blocks, EngineOptions options, FakeModel::Shape shape, const std::function<void(FakeModel&)>& prepare) {
  auto model = std::make_unique<FakeModel>(shape);
  if (prepare) prepare(*model);
  Served served;
  served.model = model.get();
  options.kv_memory_bytes = static_cast<std::size_t>(blocks) * model->kv_bytes_per_block(options.block_size, options.kv_type);
  auto engine = Engine::create(std::move(model), test_tokenizer(), options);
  if (!engine) throw std::runtime_error(engine.error().message());
  served.engine = std::move(*engine);
  return served;
}

Collector::Collector(int samples) : state_(std::make_shared<State>()) {
  state_->completion.samples.resize(static_cast<std::size_t>(samples));
  state_->unfinished = samples;
}

OnOutput Collector::sink() {
  return [state = state_](Output output) {
    const std::lock_guard lock(state->mutex);
    CompletedSample& sample = state->completion.samples.at(static_cast<std::size_t>(output.sample));
    sample.text += output.text;
    sample.tokens.insert(sample.tokens.end(), output.tokens.begin(), output.tokens.end());
    sample.logprobs.insert(sample.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
    if (output.sample == 0) state->pieces.push_back(output.text);
    if (output.finish) {
      sample.finish = *output.finish;
      --state->unfinished;
    }
    ++state->outputs;
    state->changed.notify_all();
  };
}

Completion Collector::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->unfinished == 0; });
  return state_->completion;
}

std::size_t Collector::outputs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->outputs;
}

void Collector::wait_for_outputs(std::size_t n) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->outputs >= n; });
}

std::vector<std::string> Collector::pieces() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pieces;
}

void StepGate::attach(FakeModel& model) {
  model.on_forward = [this](const StepInput&) {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || allowed_ >= arrived_; });
  };
}

void StepGate::wait_until_at(int step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return arrived_ >= step; });
}

void StepGate::run_to(int step) {
  std::unique_lock lock(mutex_);
  allowed_ = step - 1;
  changed_.notify_all();
  changed_.wait(lock, [&] { return arrived_ >= step; });
}

void StepGate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

Request greedy(std::vector<TokenId> prompt, int max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0.0F;
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

Request sampled(std::vector<TokenId> prompt, int max_tokens, std::uint64_t seed) {
  Request request = greedy(std::move(prompt), max_tokens);
  request.sampling.temperature = 0.9F;
  request.sampling.seed = seed;
  return request;
}

std::vector<TokenId> words(int n, std::uint64_t seed) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(mix64(seed * 7919 + i) % (kVocabulary - 3));
  return tokens;
}

}  // namespace fixpoint::engine::testing
