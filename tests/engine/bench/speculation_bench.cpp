// What speculation gains and costs, beside the same engine without it. By hand:
//   speculation_bench MODEL repairs CONVERSATIONS.jsonl [THREADS]   greedy repairs, one at a time (tests/models/write_conversations.py)
//   speculation_bench MODEL replay TOKENS SEQUENCES [THREADS]       a sampled output again; its prediction has an edit in 5 % of its lines
//   speculation_bench MODEL unrelated TOKENS SEQUENCES [THREADS]    sampled outputs that resemble nothing; predictions are other texts
// Each is run by both engines in turns. The outputs must be equal, token for token. Rates are of decoding: the first token
// is not counted, nor the time up to it.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/language_model.h"

namespace fixpoint::engine {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<TokenId>;

constexpr int line_tokens = 12;       // of the lines that a replayed output is taken to have
constexpr int lines_per_edit = 20;

std::unique_ptr<LanguageModel> load(const std::string& path, Speculation speculation, int threads) {
  LanguageModelOptions options;
  options.path = path;
  options.cpu.num_threads = threads;
  options.engine.kv_memory_bytes = std::size_t{1} << 30U;
  options.engine.speculation = speculation;
  auto model = LanguageModel::load(options);
  if (!model) throw std::runtime_error(model.error().message());
  return std::move(*model);
}

struct Run {
  std::vector<Tokens> outputs;
  double seconds = 0;     // from the last first token to the last token
  std::size_t tokens = 0; // in that time
  [[nodiscard]] double rate() const { return static_cast<double>(tokens) / seconds; }
};

/// All requests at once.
Run run(Engine& engine, const std::vector<Request>& requests) {
  std::mutex mutex;
  std::condition_variable done;
  std::size_t live = requests.size(), waiting = requests.size();
  Run result;
  result.outputs.resize(requests.size());
  Clock::time_point begin, end;
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto handle = engine.submit(requests[i], [&, i](const Output& output) {
      const std::lock_guard lock(mutex);
      Tokens& written = result.outputs[i];
      end = Clock::now();
      if (waiting == 0) result.tokens += output.tokens.size();
      if (written.empty() && !output.tokens.empty() && --waiting == 0) begin = end;
      written.insert(written.end(), output.tokens.begin(), output.tokens.end());
      if (output.finish && --live == 0) done.notify_one();
    });
    if (!handle) throw std::runtime_error(handle.error().message());
    handles.push_back(std::move(*handle));
  }
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return live == 0; });
  result.seconds = std::chrono::duration<double>(end - begin).count();
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void print_drafts(const EngineStats& stats) {
  for (std::size_t i = 0; i < num_draft_sources; ++i) {
    const DraftCounts& counts = stats.drafts[i];
    std::printf("  %-17s %7llu drafts, %7llu tokens, %7llu right\n", std::string(to_string(static_cast<DraftSource>(i))).c_str(),
                static_cast<unsigned long long>(counts.drafts), static_cast<unsigned long long>(counts.draft_tokens),
                static_cast<unsigned long long>(counts.accepted_tokens));
  }
}

/// Both engines by turns, every set of requests once by each.
class Comparison {
 public:
  Comparison(const std::string& path, int threads)
      : without_(load(path, Speculation::off, threads)), with_(load(path, Speculation::measured, threads)) {}

  [[nodiscard]] LanguageModel& model() { return *without_; }
  /// What the engine without speculation writes.
  [[nodiscard]] Run record(const std::vector<Request>& requests) { return run(without_->engine(), requests); }
  void compare(const std::vector<Request>& requests) {
    turn_ = !turn_;
    const Run first = run((turn_ ? without_ : with_)->engine(), requests);
    const Run second = run((turn_ ? with_ : without_)->engine(), requests);
    if (first.outputs != second.outputs) throw std::runtime_error("the outputs differ");
    const Run& plain = turn_ ? first : second;
    const Run& speculated = turn_ ? second : first;
    if (plain.tokens < 8) return;
    plain_.push_back(plain.rate());
    speculated_.push_back(speculated.rate());
    ratios_.push_back(speculated.rate() / plain.rate());
    tokens_ += plain.tokens;
    plain_seconds_ += plain.seconds;
    speculated_seconds_ += speculated.seconds;
  }
  void print(const char* what) const {
    const auto [low, high] = std::minmax_element(ratios_.begin(), ratios_.end());
    std::printf("%s: %zu runs, %zu tokens, the same in both\n", what, ratios_.size(), tokens_);
    std::printf("  without %.1f tokens/s, with %.1f (medians); ratio: median %.2f (%.2f - %.2f), of all time together %.2f\n", median(plain_),
                median(speculated_), median(ratios_), *low, *high, plain_seconds_ / speculated_seconds_);
    print_drafts(with_->engine().stats());
  }

 private:
  std::unique_ptr<LanguageModel> without_, with_;
  bool turn_ = false;
  std::vector<double> plain_, speculated_, ratios_;
  std::size_t tokens_ = 0;
  double plain_seconds_ = 0, speculated_seconds_ = 0;
};

Request continuation(Tokens prompt, int tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.ignore_eos = true;
  return request;
}

Tokens random_tokens(const Tokenizer& tokenizer, int n, std::mt19937& random) {
  Tokens tokens;
  while (std::ssize(tokens) < n) {
    const auto token = static_cast<TokenId>(random() % static_cast<std::uint64_t>(tokenizer.size()));
    if (!tokenizer.is_control(token)) tokens.push_back(token);
  }
  return tokens;
}

std::string program_in(const std::string& answer) {
  const auto fence = answer.find("```");
  const auto begin = fence == std::string::npos ? fence : answer.find('\n', fence);
  if (begin == std::string::npos) return answer;
  return answer.substr(begin + 1, answer.find("```", begin) - begin - 1);
}

void repairs(Comparison& comparison, const std::string& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    const std::vector<Message> messages{{Role::user, row["first"]}, {Role::assistant, row["wrong"]}, {Role::user, row["second"]}};
    auto prompt = comparison.model().chat_prompt(messages);
    if (!prompt) throw std::runtime_error(prompt.error());
    Request request = continuation(std::move(*prompt), 400);
    request.sampling.temperature = 0;
    request.ignore_eos = false;
    request.stop_tokens = comparison.model().chat_stop_tokens();
    request.prediction = comparison.model().tokenizer().encode(program_in(row["wrong"]), Tokenizer::ControlTokens::as_text);
    comparison.compare({request});
  }
  comparison.print("repairs");
}

/// In every twentieth line a token is another one, left out, or put in.
Tokens edited(const Tokenizer& tokenizer, Tokens text, std::mt19937& random) {
  for (std::size_t line = random() % lines_per_edit; line * line_tokens + line_tokens < text.size(); line += lines_per_edit) {
    const auto place = text.begin() + static_cast<std::ptrdiff_t>(line * line_tokens + random() % line_tokens);
    switch (random() % 3) {
      case 0: *place = random_tokens(tokenizer, 1, random)[0]; break;
      case 1: text.erase(place); break;
      default: text.insert(place, random_tokens(tokenizer, 1, random)[0]);
    }
  }
  return text;
}

void sampled(Comparison& comparison, bool related, int tokens, int sequences) {
  const Tokenizer& tokenizer = comparison.model().tokenizer();
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 7; ++repeat) {
    std::vector<Request> requests;
    for (int i = 0; i < sequences; ++i) {
      requests.push_back(continuation(random_tokens(tokenizer, 32, random), tokens));
      requests.back().sampling.seed = random();
    }
    if (related) {
      const Run recorded = comparison.record(requests);
      for (std::size_t i = 0; i < requests.size(); ++i) requests[i].prediction = edited(tokenizer, recorded.outputs[i], random);
    } else {
      for (Request& request : requests) request.prediction = random_tokens(tokenizer, tokens, random);
    }
    comparison.compare(requests);
  }
  comparison.print(related ? "replay" : "unrelated");
}

int bench(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    std::fprintf(stderr, "speculation_bench MODEL repairs FILE [THREADS] | MODEL replay|unrelated TOKENS SEQUENCES [THREADS]\n");
    return 2;
  }
  const bool of_repairs = arguments[1] == "repairs";
  const std::size_t threads_at = of_repairs ? 3 : 4;
  Comparison comparison(arguments[0], arguments.size() > threads_at ? std::stoi(arguments[threads_at]) : 0);
  if (of_repairs) {
    repairs(comparison, arguments[2]);
  } else {
    sampled(comparison, arguments[1] == "replay", std::stoi(arguments[2]), std::stoi(arguments.at(3)));
  }
  return 0;
}

}  // namespace
}  // namespace fixpoint::engine

int main(int argc, char** argv) {
  try {
    return fixpoint::engine::bench({argv + 1, argv + argc});
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
