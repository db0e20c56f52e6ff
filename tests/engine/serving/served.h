#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/serving/fake_model.h"

namespace fixpoint::engine::testing {

inline constexpr std::int64_t kVocabulary = 384;  ///< of the engine tests' tokenizer; the last three are control tokens
inline constexpr TokenId kEndOfText = kVocabulary - 3;

/// An engine over the fake model, and a way to the model while it serves.
struct Served {
  std::unique_ptr<Engine> engine;
  FakeModel* model = nullptr;

  Engine* operator->() const { return engine.get(); }
};

[[nodiscard]] Tokenizer test_tokenizer();
/// `blocks` KV blocks of options.block_size. `prepare` sees the model before the engine's thread starts.
[[nodiscard]] Served serve(int blocks, EngineOptions options = {}, FakeModel::Shape shape = {.vocab = kVocabulary, .padding = 8},
                           const std::function<void(FakeModel&)>& prepare = {});

/// Gathers the outputs of one request.
class Collector {
 public:
  explicit Collector(int samples = 1);
  [[nodiscard]] OnOutput sink();
  /// Waits until every sample has ended.
  [[nodiscard]] Completion wait();
  [[nodiscard]] std::size_t outputs() const;
  /// Waits until so many outputs have come.
  void wait_for_outputs(std::size_t n);
  /// The texts as they came, of sample 0.
  [[nodiscard]] std::vector<std::string> pieces() const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    Completion completion;
    std::vector<std::string> pieces;
    std::size_t outputs = 0;
    int unfinished = 0;
  };
  std::shared_ptr<State> state_;  // the callback may outlive the collector
};

/// Lets the engine's thread do one step at a time: it stops at the start of each forward pass until it may go on. When it
/// has arrived at the n-th, everything of the step before is done and its stats are published.
class StepGate {
 public:
  void attach(FakeModel& model);
  void wait_until_at(int step);
  /// Lets the current step and those up to `step` - 1 run, and waits until the engine stands at `step`.
  void run_to(int step);
  void open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int allowed_ = 0;
  bool open_ = false;
};

[[nodiscard]] Request greedy(std::vector<TokenId> prompt, int max_tokens);
[[nodiscard]] Request sampled(std::vector<TokenId> prompt, int max_tokens, std::uint64_t seed);
/// `n` tokens of the vocabulary, no control tokens.
[[nodiscard]] std::vector<TokenId> words(int n, std::uint64_t seed);

}  // namespace fixpoint::engine::testing
