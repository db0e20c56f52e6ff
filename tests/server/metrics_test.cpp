#include "server/metrics.h"

#include <gtest/gtest.h>

#include "server/engine_samples.h"

namespace fixpoint::server {
namespace {

TEST(MetricsTest, TextHasHelpTypeLabelsAndCumulativeBuckets) {
  Metrics metrics;
  metrics.counter("runs_total", "Runs.", {{"why", "a\"b\n"}}).add(3);
  const double bounds[] = {1, 2};
  Histogram& histogram = metrics.histogram("wait_seconds", "Waits.", bounds);
  histogram.observe(0.5);
  histogram.observe(1);
  histogram.observe(2);
  histogram.observe(9);
  const std::vector<Metrics::Sample> more{{.name = "now", .help = "Now.", .type = "gauge", .labels = {}, .value = 1.5}};
  EXPECT_EQ(metrics.text(more),
            "# HELP fixpoint_now Now.\n# TYPE fixpoint_now gauge\nfixpoint_now 1.5\n"
            "# HELP fixpoint_runs_total Runs.\n# TYPE fixpoint_runs_total counter\nfixpoint_runs_total{why=\"a\\\"b\\n\"} 3\n"
            "# HELP fixpoint_wait_seconds Waits.\n# TYPE fixpoint_wait_seconds histogram\n"
            "fixpoint_wait_seconds_bucket{le=\"1\"} 2\nfixpoint_wait_seconds_bucket{le=\"2\"} 3\nfixpoint_wait_seconds_bucket{le=\"+Inf\"} 4\n"
            "fixpoint_wait_seconds_sum 12.5\nfixpoint_wait_seconds_count 4\n");
}

TEST(MetricsTest, AValueMayCountSeveralTimes) {
  const double bounds[] = {1, 2};
  Histogram histogram(bounds);
  histogram.observe(1.5, 4);
  histogram.observe(0.5);
  EXPECT_EQ(histogram.snapshot().counts, (std::vector<std::uint64_t>{1, 4, 0}));
  EXPECT_DOUBLE_EQ(histogram.snapshot().sum, 6.5);
}

TEST(MetricsTest, ASeriesIsTheSameEachTime) {
  Metrics metrics;
  Counter& a = metrics.counter("x_total", "X.", {{"k", "1"}});
  Counter& b = metrics.counter("x_total", "X.", {{"k", "2"}});
  a.add();
  EXPECT_EQ(&a, &metrics.counter("x_total", "X.", {{"k", "1"}}));
  EXPECT_EQ(b.value(), 0U);
  EXPECT_EQ(a.value(), 1U);
}

TEST(MetricsTest, TheEnginesFiguresHaveTheNamesThatUsersKnow) {
  engine::EngineStats stats;
  stats.running = 2;
  stats.blocks_total = 8;
  stats.blocks_held = 2;
  stats.drafts[static_cast<std::size_t>(engine::DraftSource::session_text)] = {.drafts = 3, .draft_tokens = 20, .accepted_tokens = 12};
  const std::string text = Metrics().text(engine_samples(stats, "m"));
  EXPECT_NE(text.find("fixpoint_num_requests_running{model_name=\"m\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("fixpoint_kv_cache_usage_perc{model_name=\"m\"} 0.25\n"), std::string::npos);
  EXPECT_NE(text.find("fixpoint_spec_decode_num_drafts_total{model_name=\"m\",source=\"session_text\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("fixpoint_spec_decode_num_draft_tokens_total{model_name=\"m\",source=\"session_text\"} 20\n"), std::string::npos);
  EXPECT_NE(text.find("fixpoint_spec_decode_num_accepted_tokens_total{model_name=\"m\",source=\"session_text\"} 12\n"), std::string::npos);
  for (const char* name : {"num_requests_waiting", "prefix_cache_queries_total", "prefix_cache_hits_total", "num_preemptions_total", "generation_tokens_total"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace fixpoint::server
