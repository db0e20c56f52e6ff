#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/counter_rng.h"
#include "engine/kv_cache.h"
#include "engine/scheduler.h"

namespace fixpoint::engine {
namespace {

/// Scheduler and cache alone: a sampled token is just a number.
class Simulation {
 public:
  Simulation(int num_blocks, const SchedulerOptions& options) : cache_(num_blocks, 16, 0), scheduler_(cache_, options) {}

  void add(std::vector<TokenId> prompt, int output) {
    const auto total = static_cast<std::int64_t>(prompt.size()) + output;
    sequences_.push_back(std::make_unique<Sequence>(
        SequenceSpec{.id = sequences_.size() + 1, .prompt = std::move(prompt), .max_total_tokens = total, .tenant = {}}));
    scheduler_.add(*sequences_.back());
  }

  /// Sequences that had a place in this step.
  int step() {
    const StepPlan& plan = scheduler_.plan();
    EXPECT_EQ(plan.stuck, nullptr);
    std::vector<Sequence*> sampled;
    for (const Chunk& chunk : plan.chunks) {
      if (chunk.samples) sampled.push_back(chunk.sequence);
    }
    const int places = static_cast<int>(plan.chunks.size());
    scheduler_.commit();
    for (Sequence* sequence : sampled) {
      sequence->append(static_cast<TokenId>(mix64(sequence->id() * 1000 + static_cast<std::uint64_t>(sequence->num_tokens())) % 50000));
      if (sequence->num_tokens() >= sequence->max_total_tokens()) scheduler_.remove(*sequence, Scheduler::Computed::keep);
    }
    return places;
  }

  [[nodiscard]] bool busy() const { return scheduler_.has_work(); }
  [[nodiscard]] std::size_t waiting() const { return scheduler_.waiting().size(); }
  [[nodiscard]] std::size_t in_flight() const { return waiting() + scheduler_.running().size(); }
  [[nodiscard]] const auto& sequences() const { return sequences_; }
  [[nodiscard]] const SchedulerCounters& counters() const { return scheduler_.counters(); }
  [[nodiscard]] KvCache& cache() { return cache_; }

 private:
  KvCache cache_;
  Scheduler scheduler_;
  std::deque<std::unique_ptr<Sequence>> sequences_;
};

double uniform_number(std::uint64_t seed, std::uint64_t i) { return uniform(seed, 0, i, Purpose::token); }

/// Lengths by inversion of the Pareto distribution: scale / (1 - u)^(1/shape).
std::vector<int> pareto_lengths(int n, double shape, double scale, std::uint64_t seed) {
  std::vector<int> lengths;
  for (int i = 0; i < n; ++i) {
    lengths.push_back(static_cast<int>(std::lround(scale * std::pow(1.0 - uniform_number(seed, static_cast<std::uint64_t>(i)), -1.0 / shape))));
  }
  return lengths;
}

struct Occupancy {
  double continuous = 0.0;
  double fixed = 0.0;       // static batching: a batch ends with its longest
  double best = 0.0;        // what no order could exceed: the longest request alone takes so many steps
  double while_queued = 1.0;
};

/// Share of the slots that a step fills, over all steps, with continuous and with static batching of the same requests.
Occupancy occupancy(const std::vector<int>& lengths, int slots) {
  Simulation simulation(20000, {.max_running = slots, .max_step_tokens = 512});
  for (std::size_t i = 0; i < lengths.size(); ++i) simulation.add({static_cast<TokenId>(100000 + i)}, lengths[i]);
  std::int64_t filled = 0, steps = 0, filled_queued = 0, steps_queued = 0;
  while (simulation.busy()) {
    const int places = simulation.step();
    filled += places;
    ++steps;
    if (simulation.waiting() == 0) continue;
    filled_queued += places;
    ++steps_queued;
  }
  std::int64_t static_steps = 0;
  for (std::size_t i = 0; i < lengths.size(); i += static_cast<std::size_t>(slots)) {
    const auto end = std::min(lengths.size(), i + static_cast<std::size_t>(slots));
    static_steps += *std::max_element(lengths.begin() + static_cast<std::ptrdiff_t>(i), lengths.begin() + static_cast<std::ptrdiff_t>(end));
  }
  const auto work = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const std::int64_t least_steps = std::max<std::int64_t>(*std::max_element(lengths.begin(), lengths.end()), (work + slots - 1) / slots);
  EXPECT_EQ(filled, work) << "each step of each sequence gives one token";
  const auto share = [&](std::int64_t n) { return static_cast<double>(work) / static_cast<double>(n * slots); };
  return {share(steps), share(static_steps), share(least_steps),
          static_cast<double>(filled_queued) / static_cast<double>(std::max<std::int64_t>(1, steps_queued * slots))};
}

struct Mean {
  Occupancy occupancy;
  int above_80 = 0;
  int draws = 0;
};

Mean mean_occupancy(int slots) {
  Mean mean{{0.0, 0.0, 0.0, 0.0}, 0, 50};
  for (int draw = 1; draw <= mean.draws; ++draw) {
    const Occupancy o = occupancy(pareto_lengths(50, 1.5, 20.0, static_cast<std::uint64_t>(draw)), slots);
    EXPECT_GE(o.continuous, o.fixed) << "draw " << draw;
    mean.occupancy.continuous += o.continuous / mean.draws;
    mean.occupancy.fixed += o.fixed / mean.draws;
    mean.occupancy.best += o.best / mean.draws;
    mean.occupancy.while_queued += o.while_queued / mean.draws;
    mean.above_80 += o.continuous >= 0.8 ? 1 : 0;
  }
  std::printf("50 requests, Pareto(1.5, 20), %d slots, mean of %d draws: %.1f %% of the slots filled (static batching %.1f %%, "
              "no order could exceed %.1f %%; while requests wait %.1f %%); at least 80 %% in %d draws\n",
              slots, mean.draws, 100.0 * mean.occupancy.continuous, 100.0 * mean.occupancy.fixed, 100.0 * mean.occupancy.best,
              100.0 * mean.occupancy.while_queued, mean.above_80);
  return mean;
}

TEST(PolicyFiguresTest, ContinuousBatchingKeepsTheSlotsFilled) {
  const Mean four = mean_occupancy(4);
  EXPECT_GE(four.occupancy.continuous, 0.80);
  EXPECT_LT(four.occupancy.fixed, 0.60);
  // With eight slots a single long request outlives all others in most draws, whatever the order; the queue decides nothing then.
  const Mean eight = mean_occupancy(8);
  EXPECT_GE(eight.occupancy.continuous, 0.75 * eight.occupancy.best);
  EXPECT_GE(eight.occupancy.while_queued, 0.98);
}

TEST(PolicyFiguresTest, SharedPrefixesStayInASmallCache) {
  constexpr int requests = 1000;
  constexpr int shared = 64, own = 16;  // tokens; five blocks a request, room for 500
  Simulation simulation(500, {.max_running = 8, .max_step_tokens = 512});
  std::vector<std::vector<TokenId>> prefixes(5);
  const auto token = [](std::uint64_t stream, std::uint64_t i) { return static_cast<TokenId>(mix64(stream * 100000 + i) % 50000); };
  for (std::size_t p = 0; p < prefixes.size(); ++p) {
    for (std::uint64_t i = 0; i < shared; ++i) prefixes[p].push_back(token(1 + p, i));
  }
  int of_shared = 0;
  for (std::uint64_t r = 0; r < requests; ++r) {
    std::vector<TokenId> prompt;
    if (uniform_number(7, r) < 0.6) {
      prompt = prefixes[static_cast<std::size_t>(uniform_number(8, r) * 5.0)];
      ++of_shared;
    }
    while (prompt.size() < shared + own) prompt.push_back(token(1000 + r, prompt.size()));
    simulation.add(std::move(prompt), 4);
    // Eight are under way at a time.
    while (simulation.in_flight() >= 8) simulation.step();
  }
  while (simulation.busy()) simulation.step();
  int hits = 0;
  for (const auto& sequence : simulation.sequences()) hits += sequence->cached_tokens() >= shared ? 1 : 0;
  const auto& counters = simulation.counters();
  const double rate = static_cast<double>(hits) / requests;
  const double token_rate = static_cast<double>(counters.prefix_hit_tokens) / static_cast<double>(counters.prefix_query_tokens);
  std::printf("1000 requests, %d on 5 shared prefixes, 500 blocks (100 requests' worth): %.1f %% of the requests hit, %.1f %% of the tokens; "
              "%llu evictions\n",
              of_shared, 100.0 * rate, 100.0 * token_rate, static_cast<unsigned long long>(simulation.cache().prefixes().evictions()));
  EXPECT_GT(rate, 0.55);
  EXPECT_GT(simulation.cache().prefixes().evictions(), 1000U) << "the cache is under pressure";
}

}  // namespace
}  // namespace fixpoint::engine
