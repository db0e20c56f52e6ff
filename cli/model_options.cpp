#include "cli/model_options.h"

#include <unistd.h>

#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/checks.h"

namespace fixpoint::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A line that is drawn over, once loading has taken more than a second.
engine::Model::Progress terminal_progress() {
  if (isatty(STDERR_FILENO) != 1) return {};
  return [start = Clock::now(), shown = false](double fraction) mutable {
    if (!shown && Clock::now() - start < std::chrono::seconds(1)) return;
    shown = true;
    std::fprintf(stderr, "\rloading %3.0f %%%s", fraction * 100, fraction >= 1 ? "\r\033[K" : "");
  };
}

std::string chat_format_names() {
  std::string names;
  for (const auto format : {engine::ChatFormat::chatml, engine::ChatFormat::llama2, engine::ChatFormat::llama3,
                            engine::ChatFormat::mistral, engine::ChatFormat::deepseek_coder}) {
    names += (names.empty() ? "" : ", ") + std::string(engine::to_string(format));
  }
  return names;
}

CLI::Validator chat_format_name() {
  return {[](std::string& text) {
            return engine::parse_chat_format(text) ? std::string() : "unknown format '" + text + "'; known are " + chat_format_names();
          },
          "NAME"};
}

/// Whether the text is of a form that --device takes; not whether the machine has that device.
bool is_device_name(const std::string& text) {
  if (text == "cpu" || text == "cuda" || text == "auto") return true;
  const char* end = text.data() + text.size();
  int number = -1;
  if (!text.starts_with("cuda:")) return false;
  const auto parsed = std::from_chars(text.data() + 5, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number >= 0;
}

CLI::Validator device_name() {
  return {[](std::string& text) {
            return is_device_name(text) ? std::string() : "'" + text + "' is none of cpu, cuda, cuda:N, auto";
          },
          "DEVICE"};
}

constexpr const char* kBeside = "beside";

std::filesystem::path cache_folder(const std::string& where, const std::filesystem::path& model) {
  std::error_code ignored;
  if (where != kBeside) return where;
  if (std::filesystem::is_directory(model, ignored)) return model;
  return model.has_parent_path() ? model.parent_path() : ".";
}

/// What somebody who asked for a cache should know.
void tell_of_cache(const engine::LanguageModel& model) {
  const auto& cache = model.weight_cache();
  if (!cache) {
    std::fprintf(stderr, "fixpoint: --weight-cache does nothing here: %s keeps no repacked weights\n", model.backend_name().c_str());
  } else if (cache->error) {
    std::fprintf(stderr, "fixpoint: --weight-cache: the weights are not kept: %s\n", cache->error->message().c_str());
  }
}

}  // namespace

std::optional<double> parse_bytes(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  auto unit = text.substr(used);
  while (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  constexpr std::string_view kPrefixes = "KMGT";
  if (!unit.empty()) {
    const auto prefix = kPrefixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front()))));
    if (prefix != std::string_view::npos) {
      for (std::size_t i = 0; i <= prefix; ++i) value *= 1024;
      unit.erase(0, 1);
    }
  }
  // Written so that NaN fails.
  if (!(unit.empty() || unit == "B" || unit == "iB") || !(value >= 0 && value < 0x1p63)) return std::nullopt;
  return value;
}

tl::expected<std::optional<kernels::CudaOptions>, std::string> parse_device(const std::string& text) {
  if (text == "cpu") return std::nullopt;
  if (!is_device_name(text)) return tl::make_unexpected("--device: '" + text + "' is none of cpu, cuda, cuda:N, auto");
  kernels::CudaOptions options;
  if (text.starts_with("cuda:")) options.device = std::stoi(text.substr(5));
  const kernels::CudaStatus status = kernels::cuda_status();
  if (static_cast<std::size_t>(options.device) < status.devices.size()) return options;
  if (text == "auto") return std::nullopt;
  const std::string why = status.devices.empty() ? status.reason : "the highest number is " + std::to_string(status.devices.size() - 1);
  return tl::make_unexpected("--device " + text + ": " + why);
}

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("-m,--model", path, "GGUF file, or folder with config.json, tokenizer.json and safetensors")
      ->required()
      ->type_name("FILE");
  app.add_option("--threads", threads, "Threads (0: the processors this process may use)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_device_option(app, device);
  app.add_option("--gpu-memory-utilization", gpu_memory_utilization, "Share of the CUDA device's memory to use, keys and values included")
      ->check(number_between(0.05, 1))
      ->capture_default_str();
  app.add_option("--gpu-products", gpu_products,
                 "exact: tokens do not depend on what else is computed; fastest: cuBLASLt for many rows, where they may")
      ->check(CLI::IsMember({"exact", "fastest"}))
      ->capture_default_str();
  app.add_option("--kv-memory", kv_memory, "Memory for keys and values, such as 4G (default: half of what is free; on a GPU see --gpu-memory-utilization)")
      ->check(byte_size());
  app.add_option("--kv-type", kv_type, "Type of keys and values")
      ->check(kv_type_name())
      ->capture_default_str();
  app.add_option("--block-size", block_size, "Tokens in a KV block")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--step-tokens", max_step_tokens, "Most tokens that one step computes")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--speculation", speculation,
                 "on: drafts are verified where that is faster; off: never; always: every draft, for measurements. "
                 "The tokens are the same, unless --gpu-products is fastest")
      ->check(CLI::IsMember({"on", "off", "always"}))
      ->capture_default_str();
  app.add_option("--isa", isa, "Instructions to use")
      ->check(CLI::IsMember({"best", "portable", "avx2", "avx512"}))
      ->capture_default_str();
  add_chat_template_option(app, chat_template);
  add_weight_cache_option(app, weight_cache);
}

void add_device_option(CLI::App& app, std::string& value) {
  app.add_option("--device", value, "Where the model runs: cpu, cuda, cuda:N, or auto (a CUDA device where there is one)")
      ->check(device_name())
      ->capture_default_str();
}

void add_chat_template_option(CLI::App& app, std::string& value) {
  app.add_option("--chat-template", value, "Chat format, where the file's own is not wanted or not known: " + chat_format_names())
      ->check(chat_format_name());
}

void add_weight_cache_option(CLI::App& app, std::string& value) {
  // A flag with a value, so that the word after it stays a word of its own.
  app.add_flag("--weight-cache{" + std::string(kBeside) + "}", value,
               "Keep the repacked weights in a file beside the model, or in a folder (--weight-cache=FOLDER): later starts map it");
}

tl::expected<std::unique_ptr<engine::LanguageModel>, std::string> ModelOptions::load() const {
  engine::LanguageModelOptions options;
  options.path = path;
  const auto cuda = parse_device(device);
  if (!cuda) return tl::make_unexpected(cuda.error());
  options.cuda = *cuda;
  if (options.cuda && gpu_products == "fastest") options.cuda->products = kernels::CudaProducts::fastest;
  options.gpu_memory_share = gpu_memory_utilization;
  options.cpu.num_threads = threads;
  options.cpu.isa = isa == "portable" ? kernels::CpuIsa::portable
                    : isa == "avx2"   ? kernels::CpuIsa::avx2
                    : isa == "avx512" ? kernels::CpuIsa::avx512
                                      : kernels::CpuIsa::best;
  options.engine.kv_type = kernels::parse_kv_type(kv_type).value_or(kernels::KvType::f16);
  options.engine.block_size = block_size;
  options.engine.max_step_tokens = max_step_tokens;
  options.engine.max_queued_requests = max_queued_requests;
  options.engine.max_running = std::min(options.engine.max_running, max_step_tokens);
  options.engine.speculation = speculation == "off"      ? engine::Speculation::off
                               : speculation == "always" ? engine::Speculation::always
                                                         : engine::Speculation::measured;
  options.progress = terminal_progress();
  if (!weight_cache.empty()) options.weight_cache = cache_folder(weight_cache, path);
  if (!kv_memory.empty()) {
    const auto bytes = parse_bytes(kv_memory);
    if (!bytes) return tl::make_unexpected("--kv-memory: '" + kv_memory + "' is no size such as 4G or 512M");
    options.engine.kv_memory_bytes = static_cast<std::size_t>(*bytes);
  }
  if (!chat_template.empty()) {
    options.chat_format = engine::parse_chat_format(chat_template);
    if (!options.chat_format) {
      return tl::make_unexpected("--chat-template: unknown format '" + chat_template + "'; known are " +
                                 chat_format_names());
    }
  }
  auto model = engine::LanguageModel::load(options);
  if (!model) {
    const engine::LoadError& error = model.error();
    const bool of_option = !kv_memory.empty() && error.where == "kv_memory_bytes";
    return tl::make_unexpected(of_option ? "--kv-memory: " + error.detail : error.message());
  }
  if (!weight_cache.empty()) tell_of_cache(**model);
  return std::move(*model);
}

}  // namespace fixpoint::cli
