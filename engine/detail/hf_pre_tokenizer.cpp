#include "engine/detail/hf_pre_tokenizer.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/detail/fail.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCjk = "[一-龥ࠀ-一가-퟿]+";

// How a step is written below: a split by its pattern, the others by a word in angle brackets.
constexpr std::string_view kBytesStep = "<bytes>";
constexpr std::string_view kBytesAndGpt2Step = "<bytes, gpt2>";
constexpr std::string_view kDigitsStep = "<digits>";

struct Known {
  PreTokenizer pre;
  std::vector<std::string_view> steps;  ///< one that ends with … matches by its beginning
};

const std::vector<Known>& known_pre_tokenizers() {
  static const std::vector<Known> known{
      {PreTokenizer::gpt2, {kBytesAndGpt2Step}},
      {PreTokenizer::gpt2, {kGpt2, kBytesStep}},
      {PreTokenizer::llama3, {kLlama3, kBytesStep}},
      {PreTokenizer::qwen2, {kQwen2, kBytesStep}},
      {PreTokenizer::deepseek_coder, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, kDigitsStep, kBytesStep}},
      {PreTokenizer::deepseek_llm,
       {R"([\r\n])", R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓ…)", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)", kCjk, kDigitsStep, kBytesStep}},
  };
  return known;
}

/// Files write a line break in a pattern as itself or as an escape.
std::string with_escapes(std::string_view pattern) {
  std::string out;
  for (const char c : pattern) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

bool flag(const Json& step, const char* name, bool otherwise) {
  const auto it = step.find(name);
  return it != step.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

std::string string_at(const Json& step, const char* name) {
  const auto it = step.find(name);
  return it != step.end() && it->is_string() ? it->get<std::string>() : "";
}

/// A splitting step's pattern; "<…>" for one that does not simply cut at its matches.
std::string split_pattern(const Json& step) {
  const auto pattern = step.find("pattern");
  const auto behavior = string_at(step, "behavior");
  const bool invert = flag(step, "invert", false);
  const bool cuts = (behavior == "Isolated" && !invert) || (behavior == "Removed" && invert);
  if (!cuts || pattern == step.end() || !pattern->is_object()) return "<split " + behavior + ">";
  return with_escapes(string_at(*pattern, "Regex"));
}

void collect_steps(const Json& step, int depth, std::vector<std::string>& out) {
  const auto type = step.is_object() ? string_at(step, "type") : "";
  if (type == "Sequence" && depth < 4) {
    const auto inner = step.find("pretokenizers");
    if (inner != step.end() && inner->is_array()) {
      for (const auto& s : *inner) collect_steps(s, depth + 1, out);
    }
  } else if (type == "Split") {
    out.push_back(split_pattern(step));
  } else if (type == "Digits") {
    out.emplace_back(kDigitsStep);
  } else if (type == "ByteLevel" && !flag(step, "add_prefix_space", true)) {
    out.emplace_back(flag(step, "use_regex", true) ? kBytesAndGpt2Step : kBytesStep);
  } else {
    out.push_back("<" + type + ">");
  }
}

bool matches(const std::string& step, std::string_view known) {
  constexpr std::string_view kEllipsis = "…";
  if (known.ends_with(kEllipsis)) return step.starts_with(known.substr(0, known.size() - kEllipsis.size()));
  return step == known;
}

}  // namespace

tl::expected<std::optional<PreTokenizer>, LoadError> recognise_pre_tokenizer(const Json& pre_tokenizer, const std::string& file) {
  std::vector<std::string> steps;
  if (!pre_tokenizer.is_null()) collect_steps(pre_tokenizer, 0, steps);
  const bool byte_level = std::any_of(steps.begin(), steps.end(), [](const auto& s) {
    return s == kBytesStep || s == kBytesAndGpt2Step || s == "<ByteLevel>";
  });
  if (!byte_level) return std::optional<PreTokenizer>();
  for (const auto& known : known_pre_tokenizers()) {
    if (std::equal(steps.begin(), steps.end(), known.steps.begin(), known.steps.end(), matches)) return known.pre;
  }
  return fail(Kind::unsupported, file, "field 'pre_tokenizer'",
              "is not one of the known ones (GPT-2, Llama-3, Qwen2, DeepSeek); it has " + std::to_string(steps.size()) +
                  " steps and begins with " + shown(steps.front()));
}

}  // namespace fixpoint::engine::detail
