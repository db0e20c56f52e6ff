// What a round costs beside model and sandbox: a loop with a journal on disk whose model and checker answer at once.
//   agent_round_bench FILE [LOOPS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "agent/journal.h"
#include "agent/loop.h"

namespace {

using namespace fixpoint::agent;

struct Model : Generator {
  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text, std::stop_token) override {
    std::string text = "The number is wrong: it must be seven.\n```python\ndef f(xs):\n";
    for (int i = 0; i < 20; ++i) text += "    xs = [x + " + std::to_string(request.seed % 97 + static_cast<std::uint64_t>(i)) + " for x in xs]\n";
    text += "    return xs\n```";
    on_text(text);
    return Generation{.text = text, .usage = {.prompt_tokens = 600, .completion_tokens = 200}};
  }
  std::string name() const override { return "instant"; }
};

struct Judge : Checker {
  tl::expected<Judgement, CheckError> check(const CheckRequest& request, std::stop_token) override {
    Judgement judgement{.status = CheckStatus::wrong_answer, .total = 3};
    for (int i = 0; i < 3; ++i) judgement.failures.push_back({.index = i, .test = "assert f([1, 2, 3]) == [7, 7, 7]", .actual = std::to_string(request.program.size() + static_cast<std::size_t>(++calls))});
    for (int i = 0; i < 24; ++i) judgement.trace.push_back({.line = i, .source = "xs = [x + 1 for x in xs]", .effect = "xs = [2, 3, 4]"});
    return judgement;
  }
  int calls = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int loops = argc > 2 ? std::atoi(argv[2]) : 100;
  auto journal = Journal::open(argv[1], {.sync_every_commit = argc > 3});
  if (!journal) return 1;
  Model model;
  Judge checker;
  Loop loop({.model = &model, .checker = &checker, .journal = journal->get()});
  Task task{.statement = "Write `f(xs)`.", .entry_point = "f"};
  task.visible = {{Assertion{"assert f([1, 2, 3]) == [7, 7, 7]"}}};
  LoopOptions options{.ladder = {}};
  options.task = {.rounds = kMaxRounds, .tokens = 100'000, .wall = std::chrono::hours(1), .sandbox = std::chrono::hours(1)};
  std::int64_t rounds = 0, events = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < loops; ++i) {
    const auto result = loop.run(task, options, {}, [&](const Stamped&) { ++events; });
    if (!result) return 1;
    rounds += result->end.spent.rounds + 1;
  }
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::printf("%lld rounds, %lld events, %.3f ms a round\n", static_cast<long long>(rounds), static_cast<long long>(events), ms / static_cast<double>(rounds));
  return 0;
}
