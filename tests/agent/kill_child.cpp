// Runs one session in a journal, new or recorded, with a model and a checker that are pure functions and take a moment. Its
// parent kills it at any time. A generation that the journal already holds is written to the complaints file.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "agent/journal.h"
#include "agent/loop.h"

namespace {

using namespace fixpoint::agent;

std::string program(std::uint64_t value) { return "def f(x):\n    return " + std::to_string(value) + "\n"; }

/// Something to be killed in: a millisecond of a seeded length.
void dwell(std::uint64_t seed) { std::this_thread::sleep_for(std::chrono::microseconds(200 + seed % 1'500)); }

struct Model : Generator {
  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text, std::stop_token) override {
    if (finished.contains(request.seed)) std::ofstream(complaints, std::ios::app) << "generated again: seed " << request.seed << "\n";
    const std::string text = "It was wrong.\n```python\n" + program(request.seed % 6) + "```";
    for (std::size_t i = 0; i < text.size(); i += 8) {
      dwell(request.seed / 4);
      on_text(std::string_view(text).substr(i, 8));
    }
    return Generation{.text = text, .usage = {.prompt_tokens = 50, .completion_tokens = 9}, .elapsed = std::chrono::milliseconds(7)};
  }
  std::string name() const override { return "pure"; }
  std::set<std::uint64_t> finished;
  std::string complaints;
};

struct Judge : Checker {
  tl::expected<Judgement, CheckError> check(const CheckRequest& request, std::stop_token) override {
    dwell(request.program.size() * 997);
    Judgement judgement{.status = CheckStatus::wrong_answer, .total = 1, .sandbox = std::chrono::milliseconds(3), .elapsed = std::chrono::milliseconds(3)};
    judgement.failures.push_back({.test = "assert f(1) == 7", .actual = request.program});
    return judgement;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string session = argv[2];
  auto journal = Journal::open(argv[1]);
  if (!journal) return 10;
  Model model;
  Judge checker;
  model.complaints = argv[3];
  const auto recorded = (*journal)->events(session);
  Progress progress;
  if (recorded) {
    for (const Stamped& stamped : *recorded) progress.apply(stamped.event);
    for (const Round& attempt : progress.attempts) {
      if (attempt.finished) model.finished.insert(attempt.ask.seed);
    }
  }
  if (progress.ended) return 0;
  Loop loop({.model = &model, .specialist = &model, .explainer = &model, .checker = &checker, .journal = journal->get()});
  Task task{.statement = "Write `f(x)`. Give back seven.", .entry_point = "f"};
  task.visible = {{Assertion{"assert f(1) == 7"}}};
  LoopOptions options{.drafts = 3};
  options.task.rounds = 8;
  options.seed = std::strtoull(session.c_str(), nullptr, 10);
  options.ladder = {{.kind = RungKind::branch, .attempts = 4},
                    {.kind = RungKind::explainer, .attempts = 2, .grant = {.rounds = 1}},
                    {.kind = RungKind::specialist, .attempts = 2, .grant = {.rounds = 1}},
                    {.kind = RungKind::person}};
  const auto result = recorded ? loop.resume(session, {}, {}) : loop.run(task, options, {}, {}, session);
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().detail.c_str());
    return 11;
  }
  return 0;
}
