#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "engine/footprint.h"
#include "engine/kv_comparison.h"

namespace fixpoint::cli {
namespace {

using engine::KvType;
using nlohmann::json;

constexpr std::array kCompared{KvType::f32, KvType::bf16, KvType::int8, KvType::fp8_e4m3, KvType::int4};

struct CompareOptions {
  std::string path;
  std::string text;
  std::string device = "cpu";
  int threads = 0;
  bool special = false;
  double gate = 0;  ///< largest mean divergence that passes; 0: no gate
  engine::KvComparisonOptions comparison;
  bool print_json = false;
};

struct Loaded {
  std::unique_ptr<engine::Model> model;
  std::vector<engine::TokenId> tokens;
};

tl::expected<Loaded, std::string> load(const CompareOptions& options) {
  const auto cuda = parse_device(options.device);
  if (!cuda) return tl::make_unexpected(cuda.error());
  const auto text = read_input(options.text);
  if (!text) return tl::make_unexpected(text.error());
  auto file = engine::ModelFile::open(options.path);
  if (!file) return tl::make_unexpected(file.error().message());
  const auto tokenizer = engine::Tokenizer::build(file->tokenizer(), options.path);
  if (!tokenizer) return tl::make_unexpected(tokenizer.error().message());
  Loaded loaded;
  using Control = engine::Tokenizer::ControlTokens;
  loaded.tokens = tokenizer->encode(*text, options.special ? Control::parse : Control::as_text);
  if (loaded.tokens.empty()) return tl::make_unexpected(std::string("the text is empty"));
  auto backend = *cuda ? kernels::make_cuda_backend(**cuda) : kernels::make_cpu_backend({.num_threads = options.threads});
  auto model = engine::Model::load(std::move(*file), std::move(backend));
  if (!model) return tl::make_unexpected(model.error().message());
  loaded.model = std::move(*model);
  return loaded;
}

json row_of(const engine::KvComparison& c, const engine::ModelConfig& config) {
  return {{"type", to_string(c.type)},
          {"bytes_per_token", engine::kv_bytes_per_token(config, c.type)},
          {"positions", c.positions},
          {"mean_logit_error", c.mean_error},
          {"largest_logit_error", c.largest_error},
          {"mean_divergence", c.mean_divergence},
          {"largest_divergence", c.largest_divergence},
          {"same_first_token", c.same_first}};
}

int run_compare(const CompareOptions& options) {
  auto loaded = load(options);
  if (!loaded) return fail(loaded.error());
  auto& model = *loaded->model;
  auto comparison = options.comparison;
  const auto tokens = static_cast<std::int64_t>(loaded->tokens.size());
  comparison.window = std::min({comparison.window, model.context_length(), tokens});
  comparison.compared = std::min(comparison.compared, comparison.window);
  const auto all = engine::compare_kv_types(model, loaded->tokens, kCompared, comparison);
  std::string refused;
  for (const auto& c : all) {
    if (options.gate > 0 && !(c.mean_divergence <= options.gate)) refused += (refused.empty() ? "" : ", ") + std::string(to_string(c.type));
  }
  if (options.print_json) {
    json result{{"model", model.config().name}, {"baseline", to_string(comparison.baseline)}, {"tokens", tokens},
                {"window", comparison.window},   {"compared", comparison.compared},            {"types", json::array()}};
    for (const auto& c : all) result["types"].push_back(row_of(c, model.config()));
    std::printf("%s\n", result.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: logits beside those with keys and values in F16, at %lld positions (the last %lld of each %lld tokens; "
                "the text has %lld)\n\n",
                model.config().name.c_str(), static_cast<long long>(all.front().positions),
                static_cast<long long>(comparison.compared), static_cast<long long>(comparison.window), static_cast<long long>(tokens));
    std::printf("  %-6s %12s %24s %28s %12s\n", "type", "a token", "logit error mean, most", "divergence (nats) mean, most", "same first");
    for (const auto& c : all) {
      std::printf("  %-6s %12s %14.2g %9.2g %18.2g %9.2g %10.2f %%\n", std::string(to_string(c.type)).c_str(),
                  human_bytes(static_cast<double>(engine::kv_bytes_per_token(model.config(), c.type))).c_str(), c.mean_error,
                  c.largest_error, c.mean_divergence, c.largest_divergence, 100 * c.same_first);
    }
  }
  return refused.empty() ? kSuccess : fail("the mean divergence is above the gate with keys and values in " + refused);
}

}  // namespace

void add_compare_kv_command(CLI::App& model, Run& run) {
  auto options = std::make_shared<CompareOptions>();
  auto* command = model.add_subcommand("compare-kv", "What each type of keys and values changes in a model's logits");
  command->add_option("file", options->path, "GGUF file, or folder with safetensors")->required()->type_name("FILE");
  command->add_option("text", options->text, "Text to compute, such as prompts the model is used with; - for stdin")->required()->type_name("FILE");
  command->add_option("--window", options->comparison.window, "Tokens of a piece of text, computed with nothing before it")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--compared", options->comparison.compared, "Positions at its end whose logits are compared")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--gate", options->gate, "Fail if a type's mean divergence from F16 (nats) is above this")->check(number_above(0, 1000));
  command->add_option("--device", options->device, "Where the model runs: cpu, cuda, cuda:N or auto")->capture_default_str();
  command->add_option("--threads", options->threads, "Threads (0: the processors this process may use)")->check(CLI::Range(0, 1024));
  command->add_flag("--special", options->special, "Read <|im_start|> and the like in the text as control tokens");
  command->add_flag("--json", options->print_json, "Print one JSON object");
  command->footer(
      "The same tokens stand before each position, whatever the type: nothing is sampled.\n"
      "Exit codes: 0 done, 1 failed or above the gate, 2 wrong usage.");
  command->callback([options, &run] { run = [options] { return run_compare(*options); }; });
}

}  // namespace fixpoint::cli
