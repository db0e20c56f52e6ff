#include "engine/language_model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "engine/detail/kv_budget.h"
#include "engine/scheduler.h"

namespace fixpoint::engine {
namespace {

tl::expected<ChatFormat, std::string> chat_format_of(const ModelFile& file, std::optional<ChatFormat> chosen) {
  if (chosen) return *chosen;
  if (!file.chat_template()) return tl::make_unexpected(std::string("the model file has no chat template"));
  return recognise_chat_format(*file.chat_template());
}

/// What is wrong with a KV budget that was asked for. Host memory is mapped without being reserved, so one beyond what there is
/// would end the process later.
std::optional<std::string> beyond_memory(Model& model, const EngineOptions& options) {
  const bool in_range = options.block_size > 0 && options.max_running > 0;
  const auto blocks = in_range ? detail::blocks_of_budget(model, options, *options.kv_memory_bytes) : std::nullopt;
  if (!blocks) return std::nullopt;  // Engine::create says why
  const std::size_t needed = static_cast<std::size_t>(*blocks) * model.kv_bytes_per_block(options.block_size, options.kv_type);
  const auto device = model.backend().memory();
  const auto available = device ? std::optional(device->free) : detail::host_memory_left(model);
  if (!available || needed <= *available) return std::nullopt;
  return "keys and values would take " + std::to_string(needed) + " bytes, but only " + std::to_string(*available) + " are available";
}

}  // namespace

kernels::DType main_dtype(const ModelFile& file) {
  std::array<std::int64_t, 16> bytes{};
  for (const auto& [name, tensor] : file.tensors()) bytes[static_cast<std::size_t>(tensor.dtype)] += tensor.bytes();
  return static_cast<kernels::DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

tl::expected<std::unique_ptr<LanguageModel>, LoadError> LanguageModel::load(const LanguageModelOptions& options) {
  auto file = ModelFile::open(options.path);
  if (!file) return tl::make_unexpected(file.error());
  auto tokenizer = Tokenizer::build(file->tokenizer(), options.path.string());
  if (!tokenizer) return tl::make_unexpected(tokenizer.error());

  std::unique_ptr<LanguageModel> result(new LanguageModel());
  result->config_ = file->config();
  result->footprint_ = engine::footprint(*file);
  result->main_dtype_ = engine::main_dtype(*file);
  result->chat_format_ = chat_format_of(*file, options.chat_format);
  result->program_start_given_ = file->program_start_given();

  auto backend = options.cuda ? kernels::make_cuda_backend(*options.cuda) : kernels::make_cpu_backend(options.cpu);
  result->backend_name_ = backend->name();
  auto model = Model::load(std::move(*file), std::move(backend), {.progress = options.progress, .weight_cache = options.weight_cache});
  if (!model) return tl::make_unexpected(model.error());
  if (const WeightCacheReport* cache = (*model)->weight_cache()) result->weight_cache_ = *cache;
  EngineOptions engine_options = options.engine;
  const auto refused = [&](std::string where, std::string detail) {
    return tl::make_unexpected(LoadError{LoadError::Kind::inconsistent, options.path.string(), std::move(where), std::move(detail)});
  };
  if (engine_options.kv_memory_bytes) {
    if (auto wrong = beyond_memory(**model, engine_options)) return refused("kv_memory_bytes", std::move(*wrong));
  } else {
    const int rows = std::max(engine_options.max_running, kRowsForDrafts);
    engine_options.kv_memory_bytes =
        (*model)->memory_for_kv(options.gpu_memory_share, engine_options.max_step_tokens, rows, engine_options.block_size, engine_options.kv_type);
  }
  auto engine = Engine::create(std::move(*model), std::move(*tokenizer), engine_options);
  if (!engine) return refused(engine.error().field, engine.error().detail);
  result->engine_ = std::move(*engine);
  return result;
}

std::string LanguageModel::description() const {
  std::array<char, 64> size{};
  const auto millions = static_cast<double>(footprint_.parameters) / 1e6;
  std::snprintf(size.data(), size.size(), millions < 9950 ? "%.1f M" : "%.0f M", millions);
  return config_.name + " (" + std::string(to_string(config_.arch)) + ", " + size.data() + " parameters, " +
         std::string(kernels::traits(main_dtype_).name) + ")";
}

std::vector<TokenId> LanguageModel::plain_prompt(std::string_view text, Tokenizer::ControlTokens control) const {
  std::vector<TokenId> tokens;
  const auto& spec = tokenizer().spec();
  if (spec.add_bos && spec.bos) tokens.push_back(*spec.bos);
  const auto encoded = tokenizer().encode(text, control);
  tokens.insert(tokens.end(), encoded.begin(), encoded.end());
  return tokens;
}

tl::expected<std::vector<TokenId>, std::string> LanguageModel::chat_prompt(std::span<const Message> messages) const {
  if (!chat_format_) return tl::make_unexpected(chat_format_.error());
  return render_chat(*chat_format_, tokenizer(), messages);
}

std::vector<TokenId> LanguageModel::chat_stop_tokens() const {
  return chat_format_ ? stop_tokens(*chat_format_, tokenizer()) : std::vector<TokenId>{};
}

}  // namespace fixpoint::engine
