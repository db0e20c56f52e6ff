#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/tokens/small_vocabulary.h"

namespace fixpoint::engine {
namespace {

TEST(TokenizerThreadsTest, ManyThreadsMayEncodeAtOnce) {
  const auto specs = {testing::small_byte_level_spec(PreTokenizer::qwen2), testing::small_sentencepiece_spec()};
  for (const TokenizerSpec& spec : specs) {
    const Tokenizer alone = testing::build(spec);
    const Tokenizer shared = testing::build(spec);
    std::vector<std::jthread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937 random(seed % 2);  // two threads each ask for the same words
        for (int i = 0; i < 300; ++i) {
          const std::string text = testing::random_text(random, 20);
          EXPECT_EQ(shared.encode(text, Tokenizer::ControlTokens::as_text), alone.encode(text, Tokenizer::ControlTokens::as_text));
        }
      });
    }
  }
}

}  // namespace
}  // namespace fixpoint::engine
