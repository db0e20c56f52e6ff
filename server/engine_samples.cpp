#include "server/engine_samples.h"

namespace fixpoint::server {
namespace {

/// vLLM's three counters, by the source of the drafts; sum over `source` for the whole.
void add_drafts(const engine::EngineStats& stats, const std::string& model, std::vector<Metrics::Sample>& out) {
  const auto add = [&](const char* name, const char* help, std::uint64_t engine::DraftCounts::* count) {
    for (std::size_t i = 0; i < stats.drafts.size(); ++i) {
      const auto source = static_cast<engine::DraftSource>(i);
      out.push_back({.name = name, .help = help, .type = "counter",
                     .labels = {{"model_name", model}, {"source", std::string(engine::to_string(source))}},
                     .value = static_cast<double>(stats.drafts[i].*count)});
    }
  };
  add("spec_decode_num_drafts_total", "Drafts that were verified.", &engine::DraftCounts::drafts);
  add("spec_decode_num_draft_tokens_total", "Draft tokens that were verified.", &engine::DraftCounts::draft_tokens);
  add("spec_decode_num_accepted_tokens_total", "Draft tokens that were right.", &engine::DraftCounts::accepted_tokens);
}

}  // namespace

std::vector<Metrics::Sample> engine_samples(const engine::EngineStats& stats, const std::string& model) {
  const Metrics::Labels labels{{"model_name", model}};
  std::vector<Metrics::Sample> out;
  const auto add = [&](const char* type, const char* name, const char* help, auto value) {
    out.push_back({.name = name, .help = help, .type = type, .labels = labels, .value = static_cast<double>(value)});
  };
  add("gauge", "num_requests_running", "Sequences that the engine runs.", stats.running);
  add("gauge", "num_requests_waiting", "Sequences that wait for the engine.", stats.waiting);
  const double used = stats.blocks_total > 0 ? static_cast<double>(stats.blocks_held) / stats.blocks_total : 0.0;
  add("gauge", "kv_cache_usage_perc", "Part of the KV blocks that sequences or pins hold, 0 to 1.", used);
  add("gauge", "kv_blocks_total", "KV blocks.", stats.blocks_total);
  add("gauge", "kv_blocks_free", "KV blocks that hold nothing.", stats.blocks_free);
  add("gauge", "kv_blocks_cached", "KV blocks kept for reuse and held by nobody.", stats.blocks_cached);
  add("gauge", "kv_blocks_held", "KV blocks of running sequences and pins.", stats.blocks_held);
  add("gauge", "kv_blocks_pinned", "Held KV blocks that are pinned between rounds.", stats.blocks_pinned);
  add("counter", "prefix_cache_queries_total", "Prompt tokens that were looked up in the prefix cache.", stats.prefix_query_tokens);
  add("counter", "prefix_cache_hits_total", "Prompt tokens that the prefix cache had.", stats.prefix_hit_tokens);
  add("counter", "num_preemptions_total", "Times that a sequence gave its blocks to another.", stats.preemptions);
  add("counter", "prompt_tokens_total", "Prompt tokens of requests that have begun.", stats.prompt_tokens);
  add("counter", "generation_tokens_total", "Tokens written.", stats.generated_tokens);
  add("counter", "engine_steps_total", "Steps of the engine.", stats.steps);
  add("counter", "iteration_tokens_total", "Tokens that steps computed, prompts included.", stats.all_steps.tokens);
  add("counter", "kv_blocks_evicted_total", "Cached KV blocks that made room.", stats.blocks_evicted);
  add("counter", "engine_watchdog_trips_total", "Times that the scheduler had work and found none to do.", stats.watchdog_trips);
  add_drafts(stats, model, out);
  return out;
}

}  // namespace fixpoint::server
