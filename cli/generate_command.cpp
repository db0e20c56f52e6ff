#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct GenerateOptions {
  ModelOptions model;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  int max_tokens = 128;
  float temperature = 0;
  int top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  bool chat = false;
  bool control_tokens = false;
  bool ignore_eos = false;
  bool print_json = false;
};

/// What the engine's thread hands to this one. Bounded by the request's tokens.
class OutputQueue {
 public:
  void push(engine::Output output) {
    {
      const std::lock_guard lock(mutex_);
      outputs_.push_back(std::move(output));
    }
    ready_.notify_one();
  }
  /// Nothing when `patience` is over before an output came.
  std::optional<engine::Output> pop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!ready_.wait_for(lock, patience, [&] { return !outputs_.empty(); })) return std::nullopt;
    auto output = std::move(outputs_.front());
    outputs_.pop_front();
    return output;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<engine::Output> outputs_;
};

tl::expected<std::string, std::string> prompt_text(const GenerateOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  return read_input(options.prompt_file);
}

tl::expected<std::vector<engine::TokenId>, std::string> prompt_tokens(const GenerateOptions& options,
                                                                     const engine::LanguageModel& model,
                                                                     const std::string& text) {
  if (options.chat) {
    std::vector<engine::Message> messages;
    if (!options.system.empty()) messages.push_back({engine::Role::system, options.system});
    messages.push_back({engine::Role::user, text});
    auto tokens = model.chat_prompt(messages);
    if (!tokens) return tl::make_unexpected("--chat: " + tokens.error() + " (--chat-template chooses one)");
    return tokens;
  }
  using Control = engine::Tokenizer::ControlTokens;
  auto tokens = model.plain_prompt(text, options.control_tokens ? Control::parse : Control::as_text);
  if (tokens.empty()) return tl::make_unexpected(std::string("the prompt is empty"));
  return tokens;
}

engine::Request make_request(const GenerateOptions& options, const engine::LanguageModel& model) {
  engine::Request request;
  request.max_tokens = options.max_tokens;
  request.sampling.temperature = options.temperature;
  request.sampling.top_k = options.top_k;
  request.sampling.top_p = options.top_p;
  request.sampling.min_p = options.min_p;
  request.sampling.repetition_penalty = options.repetition_penalty;
  request.sampling.seed = options.seed;
  request.stop_strings = options.stop;
  request.ignore_eos = options.ignore_eos;
  if (options.chat && !options.ignore_eos) request.stop_tokens = model.chat_stop_tokens();
  return request;
}

double ms(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

json timings_json(const engine::Finish& finish, double load_ms) {
  const auto& usage = finish.usage;
  const double prefill_ms = ms(finish.timings.first_token - finish.timings.queued);
  const double decode_ms = ms(finish.timings.total - finish.timings.first_token);
  const auto rate = [](double tokens, double time_ms) { return time_ms > 0 ? tokens / time_ms * 1e3 : 0.0; };
  return {{"load_ms", load_ms},
          {"queued_ms", ms(finish.timings.queued)},
          {"first_token_ms", ms(finish.timings.first_token)},
          {"total_ms", ms(finish.timings.total)},
          {"prefill_tokens_per_s", rate(usage.prompt_tokens - usage.cached_tokens, prefill_ms)},
          {"decode_tokens_per_s", rate(usage.completion_tokens - 1, decode_ms)}};
}

json stop_json(const engine::Finish& finish) {
  if (const auto* text = std::get_if<std::string>(&finish.stop)) return *text;
  if (const auto* token = std::get_if<engine::TokenId>(&finish.stop)) return *token;
  return nullptr;
}

struct Streamed {
  engine::CompletedSample sample;
  std::uint64_t seed = 0;  ///< the request's, or the one that was drawn
};

/// Streams until the request ends; the finished sample, or an error.
tl::expected<Streamed, std::string> stream(engine::LanguageModel& model, engine::Request request, bool print_text) {
  OutputQueue queue;
  auto handle = model.engine().submit(std::move(request), [&queue](engine::Output output) { queue.push(std::move(output)); });
  if (!handle) return tl::make_unexpected(handle.error().message());
  const InterruptFlag interrupt;
  engine::CompletedSample sample;
  bool cancelled = false;
  while (true) {
    if (InterruptFlag::raised() && !std::exchange(cancelled, true)) handle->cancel();
    auto output = queue.pop(std::chrono::milliseconds(50));
    if (!output) continue;
    sample.text += output->text;
    sample.tokens.insert(sample.tokens.end(), output->tokens.begin(), output->tokens.end());
    if (print_text) {
      std::fwrite(output->text.data(), 1, output->text.size(), stdout);
      if (std::fflush(stdout) != 0) return tl::make_unexpected(std::string("cannot write to standard output: ") + std::strerror(errno));
    }
    if (output->finish) {
      sample.finish = *output->finish;
      return Streamed{std::move(sample), handle->seed()};
    }
  }
}

int run_generate(const GenerateOptions& options) {
  const auto text = prompt_text(options);
  if (!text) return fail(text.error());
  const auto start = Clock::now();
  auto model = options.model.load();
  if (!model) return fail(model.error());
  const double load_ms = ms(Clock::now() - start);

  auto request = make_request(options, **model);
  auto prompt = prompt_tokens(options, **model, *text);
  if (!prompt) return fail(prompt.error());
  request.prompt = *prompt;
  const auto streamed = stream(**model, std::move(request), !options.print_json);
  if (!streamed) return fail(streamed.error());
  const engine::CompletedSample& sample = streamed->sample;
  if (options.print_json) {
    const json result{{"text", sample.text},
                      {"tokens", sample.tokens},
                      {"prompt_tokens", *prompt},
                      {"seed", streamed->seed},
                      {"finish_reason", engine::to_string(sample.finish.reason)},
                      {"stop", stop_json(sample.finish)},
                      {"cached_tokens", sample.finish.usage.cached_tokens},
                      {"model", (*model)->config().name},
                      {"backend", (*model)->backend_name()},
                      {"timings", timings_json(sample.finish, load_ms)}};
    std::printf("%s\n", result.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    std::printf("\n");
  }
  if (sample.finish.reason == engine::FinishReason::error) return fail(sample.finish.error);
  return sample.finish.reason == engine::FinishReason::cancelled ? fail("cancelled") : kSuccess;
}

}  // namespace

void add_generate_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<GenerateOptions>();
  auto* command = app.add_subcommand("generate", "Continue a prompt and stream the text");
  options->model.add_to(*command);
  auto* prompt = command->add_option("-p,--prompt", options->prompt, "The prompt");
  auto* file = command->add_option("-f,--file", options->prompt_file, "Read the prompt from a file, or - for stdin");
  prompt->excludes(file);
  command->add_option("-n,--max-tokens", options->max_tokens, "Most tokens to generate")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  auto* chat = command->add_flag("--chat", options->chat, "Put the prompt into the model's chat format");
  command->add_option("--system", options->system, "System message")->needs(chat);
  command->add_flag("--special", options->control_tokens, "Let text such as <|im_end|> in the prompt become control tokens");
  command->add_option("--temp", options->temperature, "Temperature; 0 takes the likeliest token")
      ->check(number_between(0, 1000))
      ->capture_default_str();
  command->add_option("--top-k", options->top_k, "Sample from the k likeliest tokens (0: all)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max(), "COUNT"))
      ->capture_default_str();
  command->add_option("--top-p", options->top_p, "Sample from the likeliest tokens that sum to p")
      ->check(number_above(0, 1))
      ->capture_default_str();
  command->add_option("--min-p", options->min_p, "Drop tokens less than p times as likely as the likeliest")
      ->check(number_between(0, 1))
      ->capture_default_str();
  command->add_option("--repeat-penalty", options->repetition_penalty, "Penalty for tokens that occurred (1: none)")
      ->check(number_above(0, 100))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed: the same seed gives the same tokens")->transform(seed_number());
  command->add_option("--stop", options->stop, "End before this text; may be given several times (at most 64)")
      ->check(text_up_to(1024));
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on past the model's end token");
  command->add_flag("--json", options->print_json,
                    "Print one JSON object as the last line: text, tokens, prompt_tokens, seed, finish_reason, cached_tokens, "
                    "timings");
  command->footer("Exit codes: 0 done, 1 failed or cancelled, 2 wrong usage.");
  command->callback([options, &run, command] {
    if (command->count("--prompt") + command->count("--file") == 0) {
      throw CLI::RequiredError("--prompt or --file");
    }
    if (options->stop.size() > 64) throw CLI::ValidationError("--stop", "at most 64 of them");
    run = [options] { return run_generate(*options); };
  });
}

}  // namespace fixpoint::cli
