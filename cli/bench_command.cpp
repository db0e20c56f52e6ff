#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/roofline.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct BenchOptions {
  ModelOptions model;
  int prefill = 512;
  int decode = 128;
  std::vector<int> batches{8, 32};
  int batch_prompt = 128;
  int batch_decode = 64;
  bool shared_prompt = false;
  int repeats = 3;
  bool print_json = false;
};

/// Requests in flight and when their tokens came.
class Stopwatch {
 public:
  explicit Stopwatch(int requests) : first_(static_cast<std::size_t>(requests)), live_(requests) {}

  void on_output(std::size_t request, const engine::Output& output) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < output.tokens.size(); ++i) tokens_.push_back(now);
    if (!output.tokens.empty() && first_[request] == Clock::time_point{}) first_[request] = now;
    if (output.finish) {
      if (output.finish->reason == engine::FinishReason::error) error_ = output.finish->error;
      --live_;
      done_.notify_all();
    }
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return live_ == 0; });
    if (!error_.empty()) throw std::runtime_error(error_);
  }
  [[nodiscard]] Clock::time_point last_first_token() const { return *std::max_element(first_.begin(), first_.end()); }
  /// Tokens a second after every request has had its first token: decode alone.
  [[nodiscard]] double decode_rate() const {
    const auto start = last_first_token();
    const auto after = std::count_if(tokens_.begin(), tokens_.end(), [&](auto time) { return time > start; });
    return static_cast<double>(after) / std::chrono::duration<double>(tokens_.back() - start).count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<Clock::time_point> first_, tokens_;
  int live_;
  std::string error_;
};

class Bench {
 public:
  Bench(engine::LanguageModel& model, const BenchOptions& options) : model_(model), options_(options) {}

  /// Prompt tokens a second, from submit to the first token.
  double prefill(int tokens) {
    Stopwatch watch(1);
    const auto start = Clock::now();
    const auto handles = submit({random_prompt(tokens)}, 1, watch);
    watch.wait();
    return tokens / std::chrono::duration<double>(watch.last_first_token() - start).count();
  }
  /// Generated tokens a second, all sequences together.
  double decode(int sequences, int prompt_tokens, int tokens, bool shared) {
    std::vector<std::vector<engine::TokenId>> prompts;
    for (int i = 0; i < sequences; ++i) {
      prompts.push_back(shared && i > 0 ? prompts.front() : random_prompt(prompt_tokens));
    }
    Stopwatch watch(sequences);
    const auto handles = submit(std::move(prompts), tokens, watch);
    watch.wait();
    return watch.decode_rate();
  }

 private:
  /// Never the same twice, so that nothing is served from the prefix cache.
  std::vector<engine::TokenId> random_prompt(int tokens) {
    std::uniform_int_distribution<engine::TokenId> any(0, static_cast<engine::TokenId>(model_.tokenizer().size()) - 1);
    std::vector<engine::TokenId> prompt;
    while (prompt.size() < static_cast<std::size_t>(tokens)) {
      const auto token = any(random_);
      if (!model_.tokenizer().is_control(token)) prompt.push_back(token);
    }
    return prompt;
  }
  std::vector<engine::RequestHandle> submit(std::vector<std::vector<engine::TokenId>> prompts, int tokens, Stopwatch& watch) {
    std::vector<engine::RequestHandle> handles;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      engine::Request request;
      request.prompt = std::move(prompts[i]);
      request.max_tokens = tokens;
      request.ignore_eos = true;
      request.sampling.temperature = 0;
      auto handle = model_.engine().submit(std::move(request),
                                           [&watch, i](const engine::Output& output) { watch.on_output(i, output); });
      if (!handle) throw std::runtime_error(handle.error().message());
      handles.push_back(std::move(*handle));
    }
    return handles;
  }

  engine::LanguageModel& model_;
  const BenchOptions& options_;
  std::mt19937 random_{1};
};

struct Row {
  std::string name;
  std::vector<double> rates;  ///< tokens a second, one a repeat
  double limit = 0;
  [[nodiscard]] double median() const {
    auto sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    const auto middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
};

std::vector<Row> measure(engine::LanguageModel& model, const BenchOptions& options, const Roofline& roof) {
  Bench bench(model, options);
  const auto kv_bytes = static_cast<double>(engine::kv_bytes_per_token(model.config(), model.engine().options().kv_type));
  std::vector<Row> rows;
  if (options.prefill > 0) {
    rows.push_back({"prefill " + std::to_string(options.prefill), {}, roof.prefill(options.prefill)});
  }
  if (options.decode > 0) {
    rows.push_back({"decode " + std::to_string(options.decode), {}, roof.decode(1, options.decode / 2, kv_bytes)});
  }
  for (const int n : options.batches) {
    rows.push_back({"decode x" + std::to_string(n) + (options.shared_prompt ? " shared" : ""), {},
                    roof.decode(n, options.batch_prompt + options.batch_decode / 2, kv_bytes)});
  }
  (void)bench.prefill(static_cast<int>(std::min<std::int64_t>(32, model.engine().max_sequence_tokens() - 1)));  // warm-up: pages of weights and buffers
  // Repeats go round the rows, so that a disturbance does not fall on one row alone.
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    std::size_t row = 0;
    if (options.prefill > 0) rows[row++].rates.push_back(bench.prefill(options.prefill));
    if (options.decode > 0) rows[row++].rates.push_back(bench.decode(1, 1, options.decode, false));
    for (const int n : options.batches) {
      rows[row++].rates.push_back(bench.decode(n, options.batch_prompt, options.batch_decode, options.shared_prompt));
    }
  }
  return rows;
}

void print_rows(const engine::LanguageModel& model, const kernels::MachineLimits& limits, const std::vector<Row>& rows) {
  std::printf("%s on %s, keys and values %s\n", model.description().c_str(), model.backend_name().c_str(),
              std::string(to_string(model.engine().options().kv_type)).c_str());
  std::printf("machine: reads %.1f GB/s, FP32 %.0f, BF16 %.0f GFLOP/s, INT8 %.0f GOP/s\n\n", limits.read_bytes_per_s / 1e9,
              limits.fp32_flops / 1e9, limits.bf16_flops / 1e9, limits.int8_ops / 1e9);
  std::printf("%-20s %10s %21s %12s %9s\n", "", "tokens/s", "(min - max)", "limit", "of limit");
  for (const auto& row : rows) {
    const auto [low, high] = std::minmax_element(row.rates.begin(), row.rates.end());
    std::printf("%-20s %10.1f %10.1f - %8.1f %12.1f %7.0f %%\n", row.name.c_str(), row.median(), *low, *high, row.limit,
                100 * row.median() / row.limit);
  }
}

/// Which option asks for a longer sequence than there is room for; nothing where all fit.
std::optional<std::string> too_long(const BenchOptions& options, std::int64_t room) {
  struct Length {
    const char* option;
    std::int64_t tokens;
    bool wanted;
  };
  for (const auto& [option, tokens, wanted] : {Length{"--prefill", options.prefill + 1, options.prefill > 0},
                                               Length{"--decode", options.decode + 1, options.decode > 0},
                                               Length{"--batch-prompt with --batch-decode",
                                                   std::int64_t{options.batch_prompt} + options.batch_decode, !options.batches.empty()}}) {
    if (!wanted || tokens <= room) continue;
    return std::string(option) + ": a sequence of " + std::to_string(tokens) + " tokens, but the context or the KV memory holds " +
           std::to_string(room);
  }
  return std::nullopt;
}

/// Why rows may be above the limit, where one is.
std::optional<std::string> note(const engine::LanguageModel& model, const std::vector<Row>& rows) {
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.median() > row.limit; })) return std::nullopt;
  const double weights = model.footprint().weight_bytes;
  const auto cache = static_cast<double>(sysconf(_SC_LEVEL3_CACHE_SIZE));
  if (cache > 0 && weights > cache) return "above 100 %: the machine was busier when its limit was measured than in the row";
  return "above 100 %: the limit is that of memory, but the weights (" + human_bytes(weights) + ") fit the processor's caches";
}

int run_bench(const BenchOptions& options) {
  auto model = options.model.load();
  if (!model) return fail(model.error());
  if (const auto error = too_long(options, (*model)->engine().max_sequence_tokens())) return wrong_usage(*error);
  const auto limits = kernels::measure_machine_limits(options.model.threads);
  const Roofline roof((*model)->footprint(), (*model)->main_dtype(), limits);
  const auto rows = measure(**model, options, roof);
  if (!options.print_json) {
    print_rows(**model, limits, rows);
    if (const auto why = note(**model, rows)) std::printf("\n%s\n", why->c_str());
    return kSuccess;
  }
  json result{{"model", (*model)->config().name},
              {"type", kernels::traits((*model)->main_dtype()).name},
              {"kv_type", to_string((*model)->engine().options().kv_type)},
              {"backend", (*model)->backend_name()},
              {"read_bytes_per_s", limits.read_bytes_per_s},
              {"fp32_flops", limits.fp32_flops},
              {"bf16_flops", limits.bf16_flops},
              {"int8_ops", limits.int8_ops},
              {"rows", json::array()}};
  for (const auto& row : rows) {
    result["rows"].push_back({{"name", row.name},
                              {"tokens_per_s", row.median()},
                              {"runs", row.rates},
                              {"limit_tokens_per_s", row.limit},
                              {"of_limit", row.median() / row.limit}});
  }
  if (const auto why = note(**model, rows)) result["note"] = *why;
  std::printf("%s\n", result.dump().c_str());
  return kSuccess;
}

}  // namespace

void add_bench_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<BenchOptions>();
  auto* command = app.add_subcommand("bench", "Measure prefill, decode and batched decode, beside this machine's limits");
  options->model.add_to(*command);
  command->get_option("--model")->required(false);  // 'bench loop' can do without
  command->add_option("--prefill", options->prefill, "Prompt tokens of the prefill row (0: leave it out)")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--decode", options->decode, "Tokens of the decode row, at least 2 (0: leave it out)")
      ->check(zero_or_between(2, 1000000))
      ->capture_default_str();
  command->add_option("--batch", options->batches, "Sequences of the batched rows, comma separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--batch-prompt", options->batch_prompt, "Prompt tokens of a sequence in the batched rows")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--batch-decode", options->batch_decode, "Tokens that each of them generates")
      ->check(CLI::Range(2, 1000000))
      ->capture_default_str();
  command->add_flag("--shared-prompt", options->shared_prompt, "All sequences of a batched row have the same prompt");
  command->add_option("--repeat", options->repeats, "Runs of each row; the median is printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->print_json, "Print one JSON object");
  command->footer(
      "Prompts are random tokens and never repeat, so nothing comes from the prefix cache.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage.");
  add_bench_loop_command(*command, run);
  command->callback([command, options, &run] {
    if (!command->get_subcommands().empty()) return;
    if (options->model.path.empty()) throw CLI::RequiredError("--model");
    run = [options] { return run_bench(*options); };
  });
}

}  // namespace fixpoint::cli
