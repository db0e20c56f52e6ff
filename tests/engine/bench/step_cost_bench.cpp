// What a step costs the host beside the model, and what sampling costs. By hand: step_cost_bench [sequences]
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "engine/sampler.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using testing::words;

/// Logits that cost nothing: the same row for everybody.
class EmptyModel final : public StepModel {
 public:
  /// Its first step waits until `open`.
  explicit EmptyModel(const std::atomic<bool>& open) : open_(&open) {}
  [[nodiscard]] std::int64_t vocab_size() const override { return testing::kVocabulary; }
  [[nodiscard]] std::int64_t context_length() const override { return 4096; }
  [[nodiscard]] std::size_t kv_bytes_per_block(int block_size, kernels::KvType) const override { return static_cast<std::size_t>(block_size); }
  void allocate_kv(int, int, kernels::KvType) override {}
  void copy_blocks(std::span<const kernels::BlockCopy>) override {}
  [[nodiscard]] StepOutput forward(const StepInput& input) override {
    open_->wait(false);
    logits_.resize(input.logit_rows.size() * static_cast<std::size_t>(vocab_size()), 0.0F);
    return {logits_, {}};
  }
  [[nodiscard]] kernels::OpCounters counters() const override { return {}; }

 private:
  const std::atomic<bool>* open_;
  std::vector<float> logits_;
};

void step_cost(int sequences) {
  EngineOptions options{.kv_memory_bytes = std::size_t{1} << 20U, .max_running = sequences};
  std::atomic<bool> open = false;
  auto engine = Engine::create(std::make_unique<EmptyModel>(open), testing::test_tokenizer(), options);
  std::vector<RequestHandle> handles;
  const auto sink = [](Output) {};
  for (int i = 0; i < sequences; ++i) {
    handles.push_back(std::move(*(*engine)->submit(testing::greedy(words(64, static_cast<std::uint64_t>(i)), 2000), sink)));
  }
  open = true;
  open.notify_all();
  auto before = (*engine)->stats();
  std::vector<double> host_us;
  // On a busy machine the requests may be over before this thread has seen all of their steps.
  for (std::uint64_t step = 0; host_us.size() < 1000;) {
    const auto now = (*engine)->stats();
    if (now.steps > 0 && now.running == 0) break;
    if (now.running < sequences || now.steps == step) continue;
    if (step == 0) before = now;
    step = now.steps;
    host_us.push_back(std::chrono::duration<double, std::micro>(now.last_step.host).count());
  }
  if (host_us.empty()) {
    std::printf("host cost of a decode step, %d sequences: the machine was too busy to see one\n", sequences);
    return;
  }
  std::sort(host_us.begin(), host_us.end());
  const auto after = (*engine)->stats();
  const double mean = std::chrono::duration<double, std::micro>(after.all_steps.host - before.all_steps.host).count() /
                      static_cast<double>(after.steps - before.steps);
  std::printf("host cost of a decode step, %d sequences: median %.1f us, p99 %.1f us, mean %.1f us\n", sequences,
              host_us[host_us.size() / 2], host_us[host_us.size() * 99 / 100], mean);
}

void sampling_cost() {
  constexpr std::size_t vocabulary = 152064;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) logit = normal(random);
  Sampler sampler(vocabulary);
  struct Setting {
    const char* name;
    SamplingParams params;
  };
  const std::array settings{Setting{"greedy", {.temperature = 0.0F}}, Setting{"temperature 0.8", {.temperature = 0.8F}},
                            Setting{"top_k 40", {.temperature = 0.8F, .top_k = 40}},
                            Setting{"top_p 0.95", {.temperature = 0.8F, .top_p = 0.95F}},
                            Setting{"min_p 0.05", {.temperature = 0.8F, .min_p = 0.05F}},
                            Setting{"top_logprobs 5", {.temperature = 0.0F, .logprobs = true, .top_logprobs = 5}}};
  for (const Setting& setting : settings) {
    std::vector<double> us;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto token = sampler.sample(logits, {.params = &setting.params, .seed = 1, .position = i});
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      if (!token) std::abort();
    }
    std::nth_element(us.begin(), us.begin() + 100, us.end());
    std::printf("sampling a row of %zu logits, %s: median %.0f us\n", vocabulary, setting.name, us[100]);
  }
}

}  // namespace
}  // namespace fixpoint::engine

int main(int argc, char** argv) {
  fixpoint::engine::step_cost(argc > 1 ? std::atoi(argv[1]) : 256);
  fixpoint::engine::sampling_cost();
}
