#include "evals/loop_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace fixpoint::evals {
namespace {

constexpr std::array<std::string_view, 24> kVariableNames{"values", "index", "total", "result", "count", "items", "left", "right",
                                                  "word", "line", "start", "end", "size", "number", "text", "key",
                                                  "first", "last", "limit", "other", "pairs", "table", "best", "step"};
constexpr std::array<std::string_view, 6> kOperators{"+", "-", "*", "//", "%", "<<"};

// Lines in which $ stands for a name, @ for an operator and # for a number.
constexpr std::array<std::string_view, 6> kCode{"    $ = $ @ #\n",
                                                "    for $ in range($, #):\n",
                                                "        $.append($[$ @ #])\n",
                                                "    if $ > $ and $ != #:\n",
                                                "        return $($, $)\n",
                                                "        $ = max($, #)\n"};
constexpr std::array<std::string_view, 4> kProse{"The function takes $ and $ and returns the $ of # $.\n",
                                                 "For $ = # the $ must be #, not #.\n",
                                                 "assert solve(#, #) == #\n",
                                                 "Keep the $ when the $ is less than the $.\n"};

/// Draws that are the same on every machine: std's distributions are not.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }

  template <std::size_t n>
  std::string_view any_of(const std::array<std::string_view, n>& words) {
    return words[below(n)];
  }
  template <std::size_t n>
  std::string line(const std::array<std::string_view, n>& forms) {
    std::string out;
    for (const char c : any_of(forms)) {
      if (c == '$') {
        out += any_of(kVariableNames);
      } else if (c == '@') {
        out += any_of(kOperators);
      } else if (c == '#') {
        out += std::to_string(below(100));
      } else {
        out += c;
      }
    }
    return out;
  }
  /// Of a function's body.
  std::string code_line() { return line(kCode); }
  /// Of a task's or a verdict's words.
  std::string prose_line() { return line(kProse); }

 private:
  std::mt19937_64 engine_;
};

template <class Line>
std::vector<std::string> lines_of(std::int64_t tokens, const CountTokens& count, const Line& line) {
  std::vector<std::string> lines;
  for (std::int64_t sum = 0; sum < tokens;) {
    lines.push_back(line());
    sum += count(lines.back());
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// Changes `edits` different lines of a program.
void edit(std::vector<std::string>& lines, std::size_t edits, Draw& draw) {
  std::vector<std::size_t> order(lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = 0; i < edits; ++i) {
    std::swap(order[i], order[i + draw.below(order.size() - i)]);
    std::string& line = lines[order[i]];
    std::string other = draw.code_line();
    while (other == line) other = draw.code_line();
    line = std::move(other);
  }
}

LoopSession generate_session(int number, const LoopShape& shape, const CountTokens& count) {
  Draw draw(shape.seed * 1'000'003 + static_cast<std::uint64_t>(number) + 1);
  const auto prose = [&] { return draw.prose_line(); };
  LoopSession session{.id = "s" + std::to_string(number), .rounds = {}};
  std::vector<std::string> program = lines_of(shape.attempt_tokens, count, [&] { return draw.code_line(); });
  double owed = 0;
  for (int round = 0; round < shape.rounds; ++round) {
    if (round > 0) {
      owed += shape.edit_rate * static_cast<double>(program.size());
      const auto edits = std::min(program.size(), static_cast<std::size_t>(owed + 1e-9));
      owed -= static_cast<double>(edits);
      edit(program, edits, draw);
    }
    const std::string words = joined(lines_of(round == 0 ? shape.task_tokens : shape.feedback_tokens, count, prose));
    const std::string heading = round == 0 ? "Task " + std::to_string(number) + ".\n" : "Round " + std::to_string(round) + ": a test failed.\n";
    session.rounds.push_back({heading + words + "def solve(values, index):\n", joined(program), shape.attempt_tokens, shape.think});
  }
  return session;
}

}  // namespace

std::string prompt_text(const LoopWorkload& workload, const LoopSession& session, std::size_t round) {
  std::string text = workload.shared;
  for (std::size_t i = 0; i < round; ++i) text += session.rounds[i].ask + session.rounds[i].attempt;
  return text + session.rounds[round].ask;
}

std::vector<agent::Message> prompt_messages(const LoopWorkload& workload, const LoopSession& session, std::size_t round) {
  std::vector<agent::Message> messages;
  for (std::size_t i = 0; i <= round; ++i) {
    messages.push_back({agent::Role::user, (i == 0 ? workload.shared : std::string()) + session.rounds[i].ask});
    if (i < round) messages.push_back({agent::Role::assistant, session.rounds[i].attempt});
  }
  return messages;
}

std::int64_t guessed_tokens(std::string_view text) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(text.size()) / 3.1));
}

LoopWorkload generate_loop(const LoopShape& shape, const CountTokens& count) {
  Draw draw(shape.seed);
  LoopWorkload workload;
  workload.shared = joined(lines_of(shape.shared_tokens, count, [&] { return draw.below(3) == 0 ? draw.prose_line() : draw.code_line(); }));
  for (int i = 0; i < shape.sessions; ++i) workload.sessions.push_back(generate_session(i, shape, count));
  return workload;
}

}  // namespace fixpoint::evals
