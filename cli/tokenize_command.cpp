#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "engine/tokenizer.h"
#include "engine/tokenizer_file.h"

namespace fixpoint::cli {
namespace {

using engine::TokenId;
using engine::Tokenizer;
using nlohmann::json;

struct TokenizeOptions {
  std::string model;
  std::string text;
  bool special = false;
  bool decode = false;
  bool bos = false;
  bool print_json = false;
};

std::string input_text(const std::string& text) {
  return text == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : text;
}

/// Ids in any of the forms that this command prints: "1 2 3" or "[1, 2, 3]". Nothing for anything else.
std::optional<std::vector<TokenId>> parse_ids(std::string text, std::int64_t size) {
  for (char& character : text) {
    if (character == ',' || character == '[' || character == ']') character = ' ';
  }
  std::istringstream words(text);
  std::vector<TokenId> ids;
  for (TokenId id = 0; words >> id;) {
    if (id < 0 || id >= size) return std::nullopt;
    ids.push_back(id);
  }
  return words.eof() ? std::optional(ids) : std::nullopt;
}

/// JSON holds no bytes that are not UTF-8, so those of a token that is part of a character are replaced there.
std::string json_line(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string spelling(const Tokenizer& tokenizer, TokenId id) { return tokenizer.decode(std::vector{id}, true); }

int decode(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  const auto ids = parse_ids(input_text(options.text), tokenizer.size());
  if (!ids) {
    return wrong_usage("--decode needs ids from 0 to " + std::to_string(tokenizer.size() - 1) + ", with spaces or commas between");
  }
  const std::string text = tokenizer.decode(*ids, options.special);
  if (options.print_json) {
    std::printf("%s\n", json_line({{"text", text}, {"tokens", *ids}}).c_str());
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return kSuccess;
}

int encode(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  std::vector<TokenId> ids;
  const auto& spec = tokenizer.spec();
  if (options.bos && spec.bos) ids.push_back(*spec.bos);
  const auto control = options.special ? Tokenizer::ControlTokens::parse : Tokenizer::ControlTokens::as_text;
  const auto encoded = tokenizer.encode(input_text(options.text), control);
  ids.insert(ids.end(), encoded.begin(), encoded.end());
  if (options.print_json) {
    json pieces = json::array();
    for (const TokenId id : ids) pieces.push_back(spelling(tokenizer, id));
    std::printf("%s\n", json_line({{"tokens", ids}, {"pieces", std::move(pieces)}, {"count", ids.size()}}).c_str());
    return kSuccess;
  }
  for (const TokenId id : ids) {
    std::printf("%7d  %s\n", id, json_line(spelling(tokenizer, id)).c_str());
  }
  return kSuccess;
}

int tokenize(const TokenizeOptions& options) {
  auto file = engine::read_tokenizer(options.model);
  if (!file) return fail(file.error().message());
  const auto tokenizer = Tokenizer::build(std::move(file->spec), options.model);
  if (!tokenizer) return fail(tokenizer.error().message());
  return options.decode ? decode(*tokenizer, options) : encode(*tokenizer, options);
}

}  // namespace

void add_tokenize_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Show a text's tokens, or the text of token ids");
  command->footer(
      "Prints a token a line: its id, and its text as JSON writes it. The model's weights are not read.\n"
      "  fixpoint tokenize -m model.gguf 'int main() {}'\n"
      "  fixpoint tokenize -m model.gguf --decode '396 1887 368'\n"
      "  fixpoint tokenize -m model.gguf --json - < main.cpp");
  command->add_option("-m,--model", options->model, "GGUF file, tokenizer.json, or a folder that holds one")->required();
  command->add_option("text", options->text, "The text, or the ids with --decode; - reads standard input")->required();
  command->add_flag("--special", options->special,
                    "Control tokens: parse those that the text spells; with --decode, show them");
  command->add_flag("--bos", options->bos, "Put the model's BOS token first");
  command->add_flag("--decode", options->decode, "Turn ids into text");
  command->add_flag("--json", options->print_json, "Print one JSON object: tokens, pieces, count; or text, tokens");
  command->callback([options, &run] { run = [options] { return tokenize(*options); }; });
}

}  // namespace fixpoint::cli
