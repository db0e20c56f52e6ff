#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/roofline.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

using nlohmann::json;

struct InfoOptions {
  std::string path;
  std::string memory;
  int threads = 0;
  bool print_json = false;
};

constexpr std::array<std::int64_t, 3> kContexts{2048, 4096, 32768};
constexpr std::int64_t kPrefillTokens = 512;

struct TypeShare {
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

std::map<std::string, TypeShare> types_of(const engine::ModelFile& file) {
  std::map<std::string, TypeShare> shares;
  for (const auto& [name, tensor] : file.tensors()) {
    auto& share = shares[std::string(kernels::traits(tensor.dtype).name)];
    ++share.tensors;
    share.bytes += tensor.bytes();
  }
  return shares;
}

json config_json(const engine::ModelConfig& c) {
  return {{"architecture", engine::to_string(c.arch)},
          {"name", c.name},
          {"vocab_size", c.vocab_size},
          {"hidden", c.hidden},
          {"layers", c.num_layers},
          {"heads", c.num_heads},
          {"kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"ffn", c.ffn},
          {"context_length", c.context_length},
          {"rope_theta", c.rope_theta},
          {"tied_embeddings", c.tied_embeddings}};
}

json kv_json(const engine::ModelConfig& config, double memory_bytes, double weight_bytes) {
  json rows = json::array();
  for (const auto type : kernels::kKvTypes) {
    json users;
    for (const auto context : kContexts) {
      users[std::to_string(context)] = engine::users_that_fit(config, type, context, memory_bytes, weight_bytes);
    }
    rows.push_back({{"type", to_string(type)},
                    {"bytes_per_token", engine::kv_bytes_per_token(config, type)},
                    {"users_per_gib", engine::full_contexts_per_gib(config, type)},
                    {"users", users}});
  }
  return rows;
}

json info_json(const engine::ModelFile& file, double memory_bytes, const kernels::MachineLimits& limits) {
  const auto cost = engine::footprint(file);
  const Roofline roof(cost, engine::main_dtype(file), limits);
  const auto kv_bytes = static_cast<double>(engine::kv_bytes_per_token(file.config(), engine::KvType::f16));
  json types = json::object();
  for (const auto& [name, share] : types_of(file)) types[name] = {{"tensors", share.tensors}, {"bytes", share.bytes}};
  const auto& tokenizer = file.tokenizer_error();
  return {{"format", file.format()},
          {"tokenizer", {{"supported", !tokenizer}, {"reason", tokenizer ? json(tokenizer->where + ": " + tokenizer->detail) : json()}}},
          {"file_bytes", file.file_bytes()},
          {"parameters", cost.parameters},
          {"config", config_json(file.config())},
          {"types", types},
          {"memory_bytes", memory_bytes},
          {"weight_bytes", cost.weight_bytes},
          {"kv", kv_json(file.config(), memory_bytes, cost.weight_bytes)},
          {"machine",
           {{"read_bytes_per_s", limits.read_bytes_per_s},
            {"fp32_flops", limits.fp32_flops},
            {"bf16_flops", limits.bf16_flops},
            {"int8_ops", limits.int8_ops}}},
          {"prefill",
           {{"tokens", kPrefillTokens},
            {"flops_per_token", engine::prefill_flops_per_token(cost, kPrefillTokens)},
            {"bytes_per_token", cost.decode_weight_bytes / kPrefillTokens},
            {"limit_tokens_per_s", roof.prefill(kPrefillTokens)}}},
          {"decode",
           {{"context", kPrefillTokens},
            {"flops_per_token", engine::decode_flops_per_token(cost, kPrefillTokens)},
            {"bytes_per_token", cost.decode_weight_bytes + kv_bytes * kPrefillTokens},
            {"limit_tokens_per_s", roof.decode(1, kPrefillTokens, kv_bytes)}}}};
}

void print_info(const json& info) {
  const auto& c = info["config"];
  const auto text = [](const json& value) { return value.get<std::string>(); };
  const auto number = [](const json& value) { return value.get<double>(); };
  const auto integer = [](const json& value) { return value.get<long long>(); };
  std::printf("%s\n", text(c["name"]).c_str());
  std::printf("  architecture   %s, %lld layers, hidden %lld, ffn %lld\n", text(c["architecture"]).c_str(),
              integer(c["layers"]), integer(c["hidden"]), integer(c["ffn"]));
  std::printf("  attention      %lld heads of %lld, %lld KV heads, context %lld\n", integer(c["heads"]),
              integer(c["head_dim"]), integer(c["kv_heads"]), integer(c["context_length"]));
  std::printf("  vocabulary     %lld%s\n", integer(c["vocab_size"]),
              c["tied_embeddings"].get<bool>() ? ", output tied to the embedding" : "");
  if (!info["tokenizer"]["supported"].get<bool>()) {
    std::printf("  tokenizer      not supported, so the model can't be run: %s\n", text(info["tokenizer"]["reason"]).c_str());
  }
  std::printf("  parameters     %.1f M\n", number(info["parameters"]) / 1e6);
  std::printf("  file           %s, %s\n", text(info["format"]).c_str(), human_bytes(number(info["file_bytes"])).c_str());
  for (const auto& [name, share] : info["types"].items()) {
    std::printf("    %-6s       %4lld tensors, %s\n", name.c_str(), integer(share["tensors"]),
                human_bytes(number(share["bytes"])).c_str());
  }

  std::printf("\nKeys and values, and how many users fit in %s beside the weights\n",
              human_bytes(number(info["memory_bytes"])).c_str());
  std::printf("  %-6s %14s %9s %9s %9s %22s\n", "type", "a token", "2k", "4k", "32k", "full context, per GiB");
  for (const auto& row : info["kv"]) {
    std::printf("  %-6s %14s", text(row["type"]).c_str(), human_bytes(number(row["bytes_per_token"])).c_str());
    for (const std::int64_t context : kContexts) {
      const bool possible = context <= integer(c["context_length"]);
      std::printf(" %9s", possible ? row["users"][std::to_string(context)].dump().c_str() : "-");
    }
    std::printf(" %22.3g\n", number(row["users_per_gib"]));
  }
  std::printf("  Scales included. --kv-type chooses the type; model compare-kv tells what each changes in the logits.\n");

  const auto& machine = info["machine"];
  std::printf("\nThis machine: reads %.1f GB/s", number(machine["read_bytes_per_s"]) / 1e9);
  struct Limit {
    const char *key, *name, *unit;
  };
  for (const Limit& limit : {Limit{"fp32_flops", "FP32", "GFLOP/s"}, {"bf16_flops", "BF16", "GFLOP/s"}, {"int8_ops", "INT8", "GOP/s"}}) {
    if (number(machine[limit.key]) > 0) std::printf(", %s %.0f %s", limit.name, number(machine[limit.key]) / 1e9, limit.unit);
  }
  for (const auto* phase : {"prefill", "decode"}) {
    const auto& row = info[phase];
    std::printf("\n  %-8s %8.3f GFLOP and %9s a token: at most %.0f tokens/s", phase,
                number(row["flops_per_token"]) / 1e9, human_bytes(number(row["bytes_per_token"])).c_str(),
                number(row["limit_tokens_per_s"]));
  }
  std::printf("\n  (prefill of %lld tokens; decode of one sequence at that context)\n", static_cast<long long>(kPrefillTokens));
}

int run_info(const InfoOptions& options) {
  auto file = engine::ModelFile::open(options.path, engine::UnsupportedTokenizer::leave_out);
  if (!file) return fail(file.error().message());
  auto memory = static_cast<double>(engine::available_memory_bytes());
  if (!options.memory.empty()) {
    const auto bytes = parse_bytes(options.memory);
    if (!bytes) return wrong_usage("--memory: '" + options.memory + "' is no size such as 24G");
    memory = *bytes;
  }
  const auto info = info_json(*file, memory, kernels::measure_machine_limits(options.threads));
  if (options.print_json) {
    std::printf("%s\n", info.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    print_info(info);
  }
  return kSuccess;
}

}  // namespace

void add_model_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<InfoOptions>();
  auto* command = app.add_subcommand("model", "Look at model files")->require_subcommand(1);
  auto* info = command->add_subcommand("info", "Architecture, sizes, users that fit, and this machine's limits for it");
  info->add_option("file", options->path, "GGUF file, or folder with safetensors")->required()->type_name("FILE");
  info->add_option("--memory", options->memory, "Memory to plan for, such as 24G (default: what is free now)")
      ->check(byte_size());
  info->add_option("--threads", options->threads, "Threads to measure the limits with (0: all)")->check(CLI::Range(0, 1024));
  info->add_flag("--json", options->print_json, "Print one JSON object");
  info->footer("Exit codes: 0 done, 1 the file cannot be read or is damaged (the reason is on stderr), 2 wrong usage.");
  add_compare_kv_command(*command, run);
  info->callback([options, &run] { run = [options] { return run_info(*options); }; });
}

}  // namespace fixpoint::cli
