// Writes a small model with random weights: write_tiny_model FILE.gguf
#include "tests/engine/models/random_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fixpoint::test_models::write_random_model(argv[1], {.context = 65'536});
  return 0;
}
