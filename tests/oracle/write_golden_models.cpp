#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/oracle/golden_models.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_golden_models DIRECTORY\n");
    return 2;
  }
  try {
    const std::filesystem::path directory = argv[1];
    std::filesystem::create_directories(directory);
    for (const auto& model : fixpoint::oracle::golden_models()) {
      fixpoint::test_models::write_random_model(directory / (model.name + ".gguf"), model.spec);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_golden_models: %s\n", error.what());
    return 1;
  }
  return 0;
}
