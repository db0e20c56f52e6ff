// HumanEval+ and MBPP+: base_input and plus_input are argument lists; what is right is what the canonical solution
// returns. JSON has no tuples, sets or complex numbers, so MBPP+ names the tasks whose inputs are rebuilt.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

using sandbox::Value;

/// Which parts of an input become tuples, sets or numbers again.
enum class Rebuild { none, each_argument, items_of_arguments, items_of_first, second, sets_in_first, float_and_complex, first,
                     items_and_arguments, list_items_of_first, values_of_first, complex_first, everything };

struct RebuildRule {
  int task;
  Rebuild rebuild;
};

template <std::size_t... n>
constexpr auto join(const std::array<RebuildRule, n>&... parts) {
  std::array<RebuildRule, (n + ...)> all{};
  std::size_t at = 0;
  ((std::copy(parts.begin(), parts.end(), all.begin() + static_cast<std::ptrdiff_t>(at)), at += n), ...);
  return all;
}
template <std::size_t n>
constexpr std::array<RebuildRule, n> rule(Rebuild rebuild, const int (&tasks)[n]) {
  std::array<RebuildRule, n> out{};
  for (std::size_t i = 0; i < n; ++i) out[i] = {tasks[i], rebuild};
  return out;
}

constexpr auto kRules = join(
    rule(Rebuild::each_argument, {2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809}),
    rule(Rebuild::items_of_arguments, {63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780}),
    rule(Rebuild::items_of_first, {75, 413, 444, 753}), rule(Rebuild::second, {106, 750}), rule(Rebuild::sets_in_first, {115}),
    rule(Rebuild::float_and_complex, {124}), rule(Rebuild::first, {250, 307, 405, 446, 617, 720, 763, 808}),
    rule(Rebuild::items_and_arguments, {259, 401, 445}), rule(Rebuild::list_items_of_first, {278}), rule(Rebuild::values_of_first, {722}),
    rule(Rebuild::complex_first, {252}), rule(Rebuild::everything, {580, 615, 791}));

Rebuild rebuild_of(int task) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const RebuildRule& entry) { return entry.task == task; });
  return found == kRules.end() ? Rebuild::none : found->rebuild;
}

void make_tuple(Value& value) {
  if (value.kind == Value::Kind::list) value.kind = Value::Kind::tuple;
}
void make_items_tuples(Value& value) {
  for (Value& item : value.items) make_tuple(item);
}
void make_all_tuples(Value& value) {
  for (Value& item : value.items) make_all_tuples(item);
  make_tuple(value);
}
/// An empty list becomes an empty dict: so the published rule has it.
void make_set(Value& value) {
  if (value.kind != Value::Kind::list) return;
  value.kind = value.items.empty() ? Value::Kind::dict : Value::Kind::set;
  if (value.kind == Value::Kind::dict) return;
  std::vector<Value> distinct;
  for (Value& item : value.items) {
    const std::string text = encode(item);
    if (std::none_of(distinct.begin(), distinct.end(), [&](const Value& other) { return encode(other) == text; })) distinct.push_back(std::move(item));
  }
  value.items = std::move(distinct);
}

/// "(-1-6j)", "3j", "2.5" or a number. Anything else is left as it is.
void make_complex(Value& value) {
  Value out;
  out.kind = Value::Kind::complex;
  if (value.kind == Value::Kind::string) {
    std::string_view text = value.text;
    if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
    const std::string owned(text);
    char* rest = nullptr;
    const double first = std::strtod(owned.c_str(), &rest);
    if (rest == owned.c_str()) return;
    if (*rest == 'j') {
      out.imaginary = first;
      if (rest[1] != '\0') return;
    } else {
      out.real = first;
      if (*rest != '\0') {
        char* end = nullptr;
        out.imaginary = std::strtod(rest, &end);
        if (end == rest || *end != 'j' || end[1] != '\0') return;
      }
    }
  } else if (value.kind == Value::Kind::real) {
    out.real = value.real;
  } else if (value.kind == Value::Kind::integer) {
    out.real = std::strtod(value.text.c_str(), nullptr);
  } else {
    return;
  }
  value = out;
}
void make_float(Value& value) {
  if (value.kind == Value::Kind::integer || value.kind == Value::Kind::string) value = Value::of(std::strtod(value.text.c_str(), nullptr));
}

void rebuild_input(Value& input, Rebuild rule) {
  if (input.items.empty()) return;
  Value& first = input.items.front();
  switch (rule) {
    case Rebuild::none: return;
    case Rebuild::each_argument: return make_items_tuples(input);
    case Rebuild::items_of_arguments: std::for_each(input.items.begin(), input.items.end(), make_items_tuples); return;
    case Rebuild::items_of_first:
    case Rebuild::list_items_of_first:
      make_items_tuples(first);
      return rule == Rebuild::list_items_of_first ? make_items_tuples(input) : void();
    case Rebuild::second: return input.items.size() > 1 ? make_tuple(input.items[1]) : void();
    case Rebuild::sets_in_first: std::for_each(first.items.begin(), first.items.end(), make_set); return;
    case Rebuild::float_and_complex:
      make_float(first);
      return input.items.size() > 1 ? make_complex(input.items[1]) : void();
    case Rebuild::first: return make_tuple(first);
    case Rebuild::items_and_arguments:
      std::for_each(input.items.begin(), input.items.end(), make_items_tuples);
      return make_items_tuples(input);
    case Rebuild::values_of_first:
      for (std::size_t i = 1; i < first.items.size(); i += 2) make_tuple(first.items[i]);
      return;
    case Rebuild::complex_first: return make_complex(first);
    case Rebuild::everything: return make_all_tuples(input);
  }
}

Oracle oracle_of(bool mbpp, std::string_view entry_point) {
  if (!mbpp) return entry_point == "find_zero" ? Oracle::polynomial_zero : Oracle::equal;
  constexpr std::string_view kSets[] = {"similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly",
                                        "larg_nnum", "intersection_array", "find_dissimilar", "Diff"};
  constexpr std::string_view kNotNone[] = {"check_str", "text_match_three", "text_starta_endb"};
  if (entry_point == "are_equivalent") return Oracle::any_value;
  if (entry_point == "sum_div") return Oracle::zero_accepted;
  if (entry_point == "surface_Area") return Oracle::pyramid_surface;
  if (entry_point == "digit_distance_nums") return Oracle::padded_digit_distance;
  if (std::find(std::begin(kSets), std::end(kSets), entry_point) != std::end(kSets)) return Oracle::same_set;
  if (std::find(std::begin(kNotNone), std::end(kNotNone), entry_point) != std::end(kNotNone)) return Oracle::not_none;
  return Oracle::equal;
}

tl::expected<std::vector<Value>, DataError> inputs_of(const detail::Row& row, std::string_view field, Rebuild rule) {
  // One published row has {} for "none".
  if (const Value* value = detail::member(row.value(), field); value != nullptr && value->kind == Value::Kind::dict && value->items.empty()) {
    return std::vector<Value>();
  }
  const auto items = row.array(field);
  if (!items) return tl::unexpected(items.error());
  std::vector<Value> out;
  for (const Value& item : **items) {
    if (item.kind != Value::Kind::list) {
      return tl::unexpected(row.error(field, "input " + std::to_string(out.size()) + " is " + std::string(detail::json_kind(item)) + ", not an array"));
    }
    rebuild_input(out.emplace_back(item), rule);
  }
  return out;
}

std::vector<std::string> asserts_in(std::string_view prompt) {
  std::vector<std::string> out;
  for (std::size_t start = 0; start < prompt.size();) {
    const std::size_t end = std::min(prompt.find('\n', start), prompt.size());
    if (const std::string_view line = prompt.substr(start, end - start); line.starts_with("assert ")) out.emplace_back(line);
    start = end + 1;
  }
  return out;
}

tl::expected<Task, DataError> evalplus_task(const detail::Row& row, bool mbpp) {
  const auto id = row.text("task_id");
  if (!id) return tl::unexpected(id.error());
  const std::string_view prefix = mbpp ? "Mbpp/" : "HumanEval/";
  if (!id->starts_with(prefix)) return tl::unexpected(row.error("task_id", "does not start with " + std::string(prefix)));
  const auto prompt = row.text("prompt");
  if (!prompt) return tl::unexpected(prompt.error());
  const auto entry_point = row.text("entry_point");
  if (!entry_point) return tl::unexpected(entry_point.error());
  const auto solution = row.text("canonical_solution");
  if (!solution) return tl::unexpected(solution.error());
  const auto tolerance = row.number("atol");
  if (!tolerance) return tl::unexpected(tolerance.error());
  const Rebuild rebuild = mbpp ? rebuild_of(std::atoi(id->c_str() + prefix.size())) : Rebuild::none;
  auto base = inputs_of(row, "base_input", rebuild);
  if (!base) return tl::unexpected(base.error());
  auto plus = inputs_of(row, "plus_input", rebuild);
  if (!plus) return tl::unexpected(plus.error());
  if (base->empty()) return tl::unexpected(row.error("base_input", "is empty"));
  Task task;
  task.id = *id;
  task.language = "python";
  task.prompt = *prompt;
  task.entry_point = *entry_point;
  task.reference = *prompt + *solution;
  task.assembly = Assembly::prompt_first;
  task.stop_tokens = {"\nclass ", "\nprint", "\nif __name__"};
  if (mbpp) task.visible_asserts = asserts_in(*prompt);
  task.hidden = Differential{*std::move(base), *std::move(plus), *tolerance, oracle_of(mbpp, *entry_point)};
  task.cpu_seconds = 60;
  return task;
}

}  // namespace

bool recognises_evalplus(const detail::Row& row) { return row.has("base_input") && row.has("plus_input"); }

Loaded load_evalplus(Rows rows) {
  const auto first = rows.front().text("task_id");
  if (!first) return tl::unexpected(first.error());
  const bool mbpp = first->starts_with("Mbpp/");
  Benchmark benchmark;
  benchmark.name = mbpp ? "mbpp+" : "humaneval+";
  benchmark.prompt_id = benchmark.name + (mbpp ? "/docstring+first-test" : "/signature+docstring");
  for (const detail::Row& row : rows) {
    auto task = evalplus_task(row, mbpp);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
