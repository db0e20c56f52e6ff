#include "tests/engine/serving/random_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/engine/serving/served.h"

namespace fixpoint::engine::testing {

std::vector<Request> random_requests(std::mt19937& random, int n) {
  std::vector<Request> requests;
  for (int i = 0; i < n; ++i) {
    std::vector<TokenId> prompt = words(1 + static_cast<int>(random() % 12), random());
    if (!requests.empty() && random() % 3 != 0) {
      const auto& other = requests[random() % requests.size()].prompt;
      const auto keep = std::min<std::size_t>(random() % (other.size() + 1), 40);
      prompt.insert(prompt.begin(), other.begin(), other.begin() + static_cast<std::ptrdiff_t>(keep));
    }
    const int max_tokens = 1 + static_cast<int>(random() % 16);
    Request request = random() % 3 == 0 ? greedy(prompt, max_tokens) : sampled(prompt, max_tokens, random() % 4);
    request.ignore_eos = random() % 2 == 0;
    request.n = 1 + static_cast<int>(random() % 3);
    request.priority = static_cast<int>(random() % 3);
    request.sampling.logprobs = random() % 4 == 0;
    request.sampling.top_logprobs = request.sampling.logprobs ? 2 : 0;
    if (random() % 3 == 0) request.sampling.top_k = 20;
    if (random() % 3 == 0) request.sampling.top_p = 0.8F;
    if (random() % 4 == 0) request.sampling.min_p = 0.1F;
    if (random() % 3 == 0) request.sampling.repetition_penalty = 1.3F;
    if (random() % 3 == 0) request.sampling.frequency_penalty = 0.5F;
    if (random() % 4 == 0) request.stop_strings = {"e", "qq"};
    if (random() % 4 == 0) request.min_tokens = std::min(3, max_tokens);
    if (random() % 5 == 0) request.pin_ttl = std::chrono::hours(1);
    requests.push_back(std::move(request));
  }
  return requests;
}

void expect_same(const Completion& a, const Completion& b, const std::string& where) {
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    ASSERT_EQ(a.samples[i].tokens, b.samples[i].tokens) << where << ", sample " << i;
    ASSERT_EQ(a.samples[i].text, b.samples[i].text) << where;
    ASSERT_EQ(a.samples[i].logprobs, b.samples[i].logprobs) << where;
    ASSERT_EQ(a.samples[i].finish.reason, b.samples[i].finish.reason) << where;
    ASSERT_EQ(a.samples[i].finish.stop, b.samples[i].finish.stop) << where;
  }
}

}  // namespace fixpoint::engine::testing
