#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "engine/language_model.h"

namespace fixpoint::cli {

/// The options of every command that runs a model.
struct ModelOptions {
  std::string path;
  int threads = 0;
  std::string device = "cpu";
  std::string isa = "best";
  std::string gpu_products = "exact";
  double gpu_memory_utilization = 0.9;
  std::string kv_memory;
  std::string kv_type = "F16";
  int block_size = 16;
  int max_step_tokens = 512;
  std::string speculation = "on";
  std::string chat_template;
  std::string weight_cache;  ///< as add_weight_cache_option sets it
  int max_queued_requests = 1024;  ///< no option: a command that asks for more at a time raises it

  /// Registers -m, --device, --threads, --isa, --gpu-memory-utilization, --gpu-products, --kv-memory, --kv-type, --block-size,
  /// --step-tokens, --speculation, --chat-template and --weight-cache.
  void add_to(CLI::App& app);
  /// Loads with progress on stderr where it takes long and somebody watches. Error: a message for a person.
  [[nodiscard]] tl::expected<std::unique_ptr<engine::LanguageModel>, std::string> load() const;
};

/// --device and --chat-template, checked for their form.
void add_device_option(CLI::App& app, std::string& value);
void add_chat_template_option(CLI::App& app, std::string& value);

/// --weight-cache[=FOLDER]: `value` becomes the folder, or "beside" for the model's own; it stays empty without the option.
void add_weight_cache_option(CLI::App& app, std::string& value);

/// "cpu", "cuda", "cuda:1" or "auto" (the first CUDA device that works, else the processor): unset for the processor.
/// Error: a message for a person.
[[nodiscard]] tl::expected<std::optional<kernels::CudaOptions>, std::string> parse_device(const std::string& text);

/// "24G", "1.5GiB", "512M" or plain bytes; binary units. Nothing for what is no size below 2^63.
[[nodiscard]] std::optional<double> parse_bytes(const std::string& text);

}  // namespace fixpoint::cli
